// TouchProfile: which parts of which files a program needed first, kept between two starts; and its
// format in a file (docs/reference/learn-format.md).
//
// It is only a hint: bytes are always read from the files themselves. Plain values; not on the
// fault path.
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
  // The file's size and time when it was learnt. If it has changed since, it is still brought in.
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

  // No bytes: an empty profile. Errors: EINVAL, with the reason and the remedy, but without the
  // name of the file. The input may be forged; the result takes no more memory than the input.
  static Result<TouchProfile> decode(std::string_view bytes);
  // At most kBytesMax bytes. If not all fits, the end of a file's touches is left out, and then the
  // files that were learnt longest ago.
  std::string encode() const;

  const std::vector<LearntFile>& files() const { return files_; }  // the latest first
  const LearntFile* find(std::string_view path) const;             // nullptr: there is none
  // Adds what was learnt now. For a file that is there already, older touches that are not among
  // the new ones stay, behind them.
  void add(std::vector<LearntFile> newer);

 private:
  std::vector<LearntFile> files_;
};

}  // namespace outcore::prefetch
