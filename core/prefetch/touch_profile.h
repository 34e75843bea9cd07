// TouchProfile: what of which files a program needed first, as it is kept between two starts; and
// its form in a file (docs/reference/learn-format.md).
//
// It is a hint and never more: bytes are always read from the files themselves. Plain values; not
// on the fault path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "outcore/result.h"

namespace outcore::prefetch {

struct LearntFile {
  std::string path;  // absolute
  // What the file was when it was learnt. A file that has changed since is still brought in ahead.
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;
  std::string touches;  // encode_touches()
  bool operator==(const LearntFile&) const = default;
};

class TouchProfile {
 public:
  static constexpr std::string_view kMagic = "OCLN";  // the first bytes of a file
  static constexpr size_t kBytesMax = 1 << 20;        // in a file
  static constexpr size_t kFilesMax = 4096;
  static constexpr size_t kPathBytesMax = 4096;

  // No bytes: a profile of no files. Errors: EINVAL, with the reason and the remedy but not the
  // name of the file. What is read may be forged; it takes no more memory than its bytes.
  static Result<TouchProfile> decode(std::string_view bytes);
  // At most kBytesMax bytes: what does not fit is the end of the touches of some file, and then the
  // files that were learnt longest ago.
  std::string encode() const;

  const std::vector<LearntFile>& files() const { return files_; }  // the latest first
  const LearntFile* find(std::string_view path) const;             // nullptr: there is none
  // Adds what was learnt now. Of a file that is there already what it has beside stays, behind.
  void add(std::vector<LearntFile> newer);

 private:
  std::vector<LearntFile> files_;
};

}  // namespace outcore::prefetch
