#include "sight/commands/process_facts.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <system_error>

#include "cli/text.h"

namespace outcore::cli {
namespace {

constexpr size_t kCommandBytesMax = 4096;

std::string user_name(uid_t uid) {
  std::array<char, 4096> text;
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, text.data(), text.size(), &found) == 0 && found != nullptr)
    return found->pw_name;
  return std::to_string(uid);
}

// Its words, set apart by blanks.
std::string command_line(const std::string& folder) {
  std::ifstream file(folder + "/cmdline");
  std::string text(kCommandBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// Empty: another user's, whose file is not told.
std::string program_of(const std::string& folder) {
  static constexpr std::string_view kRemoved = " (deleted)";
  std::error_code unknown;
  std::string path = std::filesystem::read_symlink(folder + "/exe", unknown);
  if (path.ends_with(kRemoved)) path.resize(path.size() - kRemoved.size());
  return one_line(path.substr(path.rfind('/') + 1));
}

// The fields of /proc/PID/stat behind the name, which may have blanks and brackets.
void read_stat(const std::string& folder, ProcessFacts* facts) {
  std::ifstream file(folder + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return;
  const size_t start = text.find('(') + 1;
  if (facts->name.empty() && start <= end) facts->name = one_line(text.substr(start, end - start));
  std::istringstream fields(text.substr(end + 1));
  std::string skipped;
  uint64_t user_ticks = 0, system_ticks = 0;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  fields >> user_ticks >> system_ticks;
  for (int i = 16; i < 22; ++i) fields >> skipped;
  fields >> facts->started;
  const auto ticks_a_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  facts->cpu_seconds = static_cast<double>(user_ticks + system_ticks) / ticks_a_second;
}

}  // namespace

std::vector<std::string> proc_texts(pid_t process, const char* file) {
  std::ifstream in("/proc/" + std::to_string(process) + "/" + file, std::ios::binary);
  std::vector<std::string> texts;
  for (std::string text; std::getline(in, text, '\0');) texts.push_back(text);
  return texts;
}

uint64_t machine_memory_bytes() {
  return static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES))) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

ProcessFacts facts_of(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  ProcessFacts facts;
  struct stat about {};
  if (::stat(folder.c_str(), &about) == 0) facts.user = user_name(about.st_uid);
  const std::string words = command_line(folder);
  const std::string first = words.substr(0, words.find('\0'));
  facts.called = one_line(first.substr(first.rfind('/') + 1));
  facts.name = program_of(folder);
  if (facts.name.empty()) facts.name = facts.called;
  facts.command = one_line(words);
  read_stat(folder, &facts);
  if (facts.called.empty()) facts.called = facts.name;
  if (facts.command.empty()) facts.command = "[" + facts.name + "]";
  uint64_t pages = 0, resident = 0;
  if (std::ifstream(folder + "/statm") >> pages >> resident)
    facts.rss_bytes = resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return facts;
}

}  // namespace outcore::cli
