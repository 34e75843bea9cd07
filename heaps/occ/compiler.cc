#include "heaps/occ/compiler.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace occ {
namespace {

struct Meaning {
  const char* message;  // a message of a compiler or linker
  const char* also;     // what must be on the same line; "" for nothing
  const char* hint;
};

constexpr const char* kInitial =
    "dlm data begins as zeros and cannot have other initial values: assign them in the program "
    "(clang -O1 makes such values of simple constructors)";
constexpr const char* kScope =
    "dlm is for variables outside of functions, or static in one: not for local variables, "
    "parameters, members, types or functions";
constexpr const char* kThreadLocal =
    "dlm data cannot be thread_local: there is one of it, for all threads";
constexpr Meaning kMeanings[] = {
    {"only zero initializers are allowed in section", "lbss", kInitial},
    {"cannot have non-zero initializers", "bss", kInitial},
    {"section attribute cannot be specified for local variables", "", kScope},
    {"section attribute not allowed for", "", kScope},
    {"'section' attribute only applies to", "", kScope},
    {"causes a section type conflict with", "",
     "dlm data cannot be const, a function, inline, of a template or thread_local beside other "
     "dlm data"},
    {"setting incorrect section attributes for .lbss", "",
     "dlm data cannot be thread_local: there is one of it, for all threads; and dlm is not for "
     "functions"},
    {"cannot have instructions", "bss", kScope},
    {"relocation truncated to fit", "TPOFF", kThreadLocal},
    {"multiple definition of", "__tsan_default_suppressions",
     "under -fsanitize=thread occ brings this function; name your suppressions in TSAN_OPTIONS"},
    {"relocation truncated to fit", "",
     "if this is dlm data, declare it there, too, with the word dlm (extern dlm …), and compile "
     "that file with occ; other static data ends at 2 GiB"},
};

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// The first meaning that fits the line; nullptr: none does.
const Meaning* meaning_of(const std::string& line) {
  for (const Meaning& meaning : kMeanings)
    if (has(line, meaning.message) && has(line, meaning.also)) return &meaning;
  return nullptr;
}

// Waits for output or for the end of `child` (a pidfd; -1: the kernel has none). True: there is
// output.
bool has_words(int fd, int child) {
  pollfd both[2] = {{fd, POLLIN, 0}, {child, POLLIN, 0}};
  while (::poll(both, 2, -1) < 0 && errno == EINTR) {
  }
  if ((both[1].revents & POLLIN) == 0) return true;
  return ::poll(both, 1, 0) > 0;  // the rest of its output
}

// Passes the output on, line by line, and explains it afterwards. Ends when the compiler does,
// because a process that it leaves in the background has the pipe open, too.
void relay(int fd, int child) {
  bool is_told[std::size(kMeanings)] = {};
  std::string line;
  char text[4096];
  while (has_words(fd, child)) {
    const ssize_t n = ::read(fd, text, sizeof text);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    std::fwrite(text, 1, static_cast<size_t>(n), stderr);
    line.append(text, static_cast<size_t>(n));
    for (size_t end = 0; (end = line.find('\n')) != std::string::npos; line.erase(0, end + 1))
      if (const Meaning* found = meaning_of(line.substr(0, end))) is_told[found - kMeanings] = true;
  }
  for (size_t i = 0; i < std::size(kMeanings); ++i) {
    bool is_new = is_told[i];
    for (size_t j = 0; j < i; ++j)
      is_new = is_new && !(is_told[j] && kMeanings[j].hint == kMeanings[i].hint);
    if (is_new) std::fprintf(stderr, "occ: %s\n", kMeanings[i].hint);
  }
}

// "gcc-12" → "g++-12".
std::string cxx_of(const std::string& c) {
  const size_t slash = c.rfind('/') + 1;  // 0 if there is no slash
  const std::string folder = c.substr(0, slash), name = c.substr(slash);
  if (has(name, "++")) return c;
  for (const auto& [from, to] : {std::pair{"clang", "clang++"}, {"gcc", "g++"}, {"cc", "c++"}})
    if (const size_t at = name.rfind(from); at != std::string::npos)
      return folder + name.substr(0, at) + to + name.substr(at + std::strlen(from));
  return c;
}

}  // namespace

Words compiler_command(const std::string& asked, bool is_cxx) {
  std::string text = asked;
  const char* variable = std::getenv(is_cxx ? "OCC_CXX" : "OCC_CC");
  if (text.empty() && variable != nullptr) text = variable;
  const bool is_named = !text.empty() && asked.empty();
  if (text.empty()) text = is_cxx ? "c++" : "cc";
  Words words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.empty()) words.push_back(is_cxx ? "c++" : "cc");
  if (!is_cxx || is_named) return words;
  // The last word that is not an option: "ccache gcc -m64".
  for (auto word = words.rbegin(); word != words.rend(); ++word)
    if ((*word)[0] != '-') {
      *word = cxx_of(*word);
      break;
    }
  return words;
}

std::string shell_line(const Words& words) {
  std::string line;
  for (const std::string& word : words) {
    const bool is_plain =
        !word.empty() && word.find_first_not_of(
                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "_-+=./,:@%") == std::string::npos;
    std::string quoted;
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += (line.empty() ? "" : " ") + (is_plain ? word : "'" + quoted + "'");
  }
  return line;
}

int run_compiler(const Words& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    std::fprintf(stderr, "occ: make a pipe: %s\n", std::strerror(errno));
    return 127;
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    std::fprintf(stderr, "occ: start %s: %s; name a compiler with --cc= or OCC_CC\n", arguments[0],
                 std::strerror(error));
    return 127;
  }
  const int ending = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  relay(ends[0], ending);
  if (ending >= 0) ::close(ending);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace occ
