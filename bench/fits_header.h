// FitsHeader: what a FITS file begins with that has a cube of 32-bit whole numbers: cards of 80
// characters, in blocks of 2880 bytes (FITS standard 4.0, chapters 3 and 4). Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace outcore::bench {

class FitsHeader {
 public:
  static constexpr uint64_t kBlockBytes = 2880, kCardBytes = 80;

  // `sides`: the first is that in which numbers lie side by side. REQUIRES: none is 0.
  explicit FitsHeader(const std::array<uint64_t, 3>& sides);

  const std::string& text() const { return text_; }  // whole blocks
  // Header, numbers and zeros up to a whole block.
  uint64_t file_bytes() const { return file_bytes_; }
  static uint64_t whole_blocks(uint64_t bytes) {
    return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  }

 private:
  void add(const std::string& card);
  void add(const char* keyword, const std::string& value, const char* comment);

  std::string text_;
  uint64_t file_bytes_;
};

}  // namespace outcore::bench
