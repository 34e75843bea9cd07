#include "run/commands/program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

#include "cli/assert.h"

namespace outcore::cli {
namespace {

constexpr size_t kFilesMax = 8;           // of scripts that run scripts; Linux follows 5
constexpr size_t kScriptLineBytes = 256;  // as the kernel reads
constexpr const char* kUsualPath = "/bin:/usr/bin";

class File {
 public:
  explicit File(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (number_ != -1) ::close(number_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// 0, or why it could not be started.
int check_executable(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return errno == ENOTDIR ? ENOENT : errno;
  if (!S_ISREG(facts.st_mode)) return EACCES;
  return ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

// As execvp(3) looks: what may not be executed is passed over, and remembered.
int find_in_path(const std::string& word, std::string* found) {
  *found = word;
  if (word.empty()) return ENOENT;
  if (word.find('/') != std::string::npos) return check_executable(word);
  const char* const path = std::getenv("PATH");
  int error = ENOENT;
  std::istringstream folders(path != nullptr ? path : kUsualPath);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + word;
    const int why = check_executable(candidate);
    if (why == 0) {
      *found = candidate;
      return 0;
    }
    // A folder that may not be searched is none.
    if (why == EACCES && ::access(candidate.c_str(), F_OK) == 0) error = EACCES;
  }
  return error;
}

// What a #! line starts: the interpreter, and the program that env(1) would start then.
std::vector<std::string> interpreters_of(const std::string& line) {
  CLI_CHECK(line.starts_with("#!"));
  std::istringstream words(line.substr(2));
  std::string interpreter;
  if (!(words >> interpreter)) return {};
  // The kernel looks in no PATH.
  std::vector<std::string> all = {(interpreter.find('/') == std::string::npos ? "./" : "") +
                                  interpreter};
  if (interpreter.substr(interpreter.rfind('/') + 1) != "env") return all;
  for (std::string word; words >> word;) {
    if (word.starts_with("-S")) word.erase(0, 2);  // env -S, or env -Sperl
    if (word.empty() || word.starts_with("-") || word.find('=') != std::string::npos) continue;
    all.push_back(word);
    break;
  }
  return all;
}

std::string first_line(int file) {
  char text[kScriptLineBytes];
  const ssize_t n = ::pread(file, text, sizeof text, 0);
  const std::string read(text, n > 0 ? static_cast<size_t>(n) : 0);
  return read.substr(0, read.find('\n'));
}

// With more rights than its caller a program gets nothing preloaded (AT_SECURE).
void add_rights(const std::string& path, std::vector<Obstacle>* obstacles) {
  struct stat facts {};
  struct statvfs mount {};
  if (::stat(path.c_str(), &facts) != 0) return;
  if (::statvfs(path.c_str(), &mount) == 0 && (mount.f_flag & ST_NOSUID) != 0) return;
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return;
  const auto add = [&](const std::string& what, const std::string& drop, bool is_for_others) {
    obstacles->push_back(
        {"rights", what + ", so the loader ignores LD_PRELOAD", drop, is_for_others});
  };
  if ((facts.st_mode & S_ISUID) != 0)
    add("is set-user-ID of user " + std::to_string(facts.st_uid),
        "run a copy without the bit (cp makes one), as the user that it needs",
        facts.st_uid == ::getuid());
  if ((facts.st_mode & S_ISGID) != 0 && (facts.st_mode & S_IXGRP) != 0)
    add("is set-group-ID of group " + std::to_string(facts.st_gid),
        "run a copy without the bit (cp makes one), in the group that it needs",
        facts.st_gid == ::getgid());
  if (::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0)
    add("has file capabilities", "run a copy without them (cp makes one), with ambient ones",
        ::getuid() == 0);
}

void add_obstacles(const std::string& path, const ElfFile& elf, std::vector<Obstacle>* obstacles) {
  if (!elf.is_ours) {
    obstacles->push_back({"machine", "is for " + elf.machine + ", and Outcore is for 64-bit x86-64",
                          "use its x86-64 build"});
    return;
  }
  if (elf.is_go)
    obstacles->push_back({"Go",
                          "is a Go program, which makes its system calls itself: no library sees "
                          "its mappings, even if it is dynamically linked",
                          "map its data through Outcore's C functions (cgo)"});
  else if (elf.interpreter.empty())
    obstacles->push_back({"linking", "is statically linked, and no library can be loaded before it",
                          "link it dynamically (without -static)"});
  if (is_musl(elf))
    obstacles->push_back({"C library", "is linked with musl, and the preload library needs glibc",
                          "use its build for glibc"});
  add_rights(path, obstacles);
}

}  // namespace

bool is_musl(const ElfFile& elf) { return elf.interpreter.find("/ld-musl") != std::string::npos; }

Program find_program(const std::string& word) {
  Program program;
  std::vector<std::string> next = {word};
  while (!next.empty() && program.files.size() < kFilesMax) {
    const std::string name = next.front();
    next.erase(next.begin());
    ProgramFile file;
    program.error = find_in_path(name, &file.path);
    if (program.error != 0) {
      program.missing = file.path;
      return program;
    }
    const File opened(file.path);
    file.is_readable = opened.number() != -1;
    if (file.is_readable) file.elf = read_elf(opened.number());
    if (file.elf && file.elf->kind != ElfFile::Kind::kProgram) program.error = ENOEXEC;
    if (file.elf && program.error == 0) {
      add_obstacles(file.path, *file.elf, &file.obstacles);
      const std::string& loader = file.elf->interpreter;
      if (!loader.empty() && ::access(loader.c_str(), F_OK) != 0) program.error = ENOENT;
    } else if (file.is_readable && !file.elf) {
      const std::string line = first_line(opened.number());
      file.is_script = line.starts_with("#!");
      const std::vector<std::string> more =
          file.is_script ? interpreters_of(line) : std::vector<std::string>();
      if (more.empty()) program.error = ENOEXEC;
      next.insert(next.begin(), more.begin(), more.end());
    }
    const bool is_loader_missing = program.error == ENOENT;
    CLI_CHECK(!is_loader_missing || file.elf.has_value());
    program.missing = is_loader_missing ? file.elf->interpreter : file.path;
    program.files.push_back(std::move(file));
    if (program.error != 0) return program;
  }
  CLI_CHECK(program.files.size() <= kFilesMax);
  if (!next.empty()) program.error = ELOOP;
  return program;
}

}  // namespace outcore::cli
