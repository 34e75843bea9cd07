// Earlier output: how `outcore run` lets the processes of its run know what was in the files of
// their reports before. The first runtime of the run empties it; until then it stays.
//
// In the environment: the process with which the run began, and a line for each file, "MARK PATH".
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace outcore::base {

struct EarlierOutput {
  static constexpr const char* kVariable = "OUTCORE_RUN_BEFORE";
  static constexpr const char* kNoFile = "none";

  // This process has told of a file why it could not be written: that nothing is there is no news.
  static inline constinit std::atomic<bool> is_failure_told{false};

  // Of a file's content, as long as nobody changes it.
  static std::string mark_of(const struct stat& about) {
    std::string mark = std::to_string(about.st_dev);
    for (const int64_t part :
         {static_cast<int64_t>(about.st_ino), static_cast<int64_t>(about.st_size),
          static_cast<int64_t>(about.st_mtim.tv_sec), static_cast<int64_t>(about.st_mtim.tv_nsec)})
      mark += ":" + std::to_string(part);
    return mark;
  }
  static std::string mark_of(const std::string& path) {
    struct stat about {};
    return ::stat(path.c_str(), &about) == 0 ? mark_of(about) : kNoFile;
  }

  // Calls f(mark, path) for each file of the run that `process` began; 0: of any run.
  template <typename F>
  static void for_each(int64_t process, const F& f) {
    const char* const text = std::getenv(kVariable);
    std::string_view rest = text == nullptr ? "" : text;
    bool is_first = true;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(line.size() == rest.size() ? line.size() : line.size() + 1);
      const size_t blank = line.find(' ');
      if (is_first && process != 0 && line != std::to_string(process)) return;
      if (!is_first && blank != std::string_view::npos)
        f(line.substr(0, blank), line.substr(blank + 1));
      is_first = false;
    }
  }
  // Whether this is in the file since before the run.
  static bool is_left(const struct stat& about) {
    bool is_found = false;
    const std::string mark = mark_of(about);
    for_each(0, [&](std::string_view of, std::string_view) { is_found |= of == mark; });
    return is_found;
  }
};

}  // namespace outcore::base
