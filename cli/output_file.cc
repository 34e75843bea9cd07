#include "cli/output_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "cli/text.h"

namespace outcore::cli {
namespace {

int first_failure = 0;  // an errno

}  // namespace

void note_failed_output() {
  if (first_failure == 0) first_failure = errno;
}

int failed_output() { return first_failure; }

Status check_output(const std::string& path, HowWritten how, const std::string& attempt) {
  std::error_code none;
  // A link's target is written, or replaced.
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, none);
  const std::string target = none || real.empty() ? path : real.string();
  struct stat about {};
  const bool is_there = ::stat(target.c_str(), &about) == 0;
  int why = is_there || errno == ENOENT ? 0 : errno;
  if (is_there && S_ISDIR(about.st_mode)) why = EISDIR;
  const bool in_place = is_there && (how == HowWritten::kInPlace || !S_ISREG(about.st_mode));
  const size_t slash = target.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : target.substr(0, slash + 1);
  if (why == 0 &&
      ::access(in_place ? target.c_str() : folder.c_str(), in_place ? W_OK : W_OK | X_OK) != 0)
    why = errno;
  return why == 0 ? Status()
                  : Status(failure(why, attempt, "name a file in a folder that you may write to"));
}

}  // namespace outcore::cli
