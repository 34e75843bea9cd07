// ImageFile: a cube of images as the FITS file that holds it, word by word. Any thread.
#pragma once

#include <bit>
#include <cstdint>

#include "bench/fits_header.h"
#include "bench/image_cube.h"

namespace outcore::bench {

class ImageFile {
 public:
  explicit ImageFile(const ImageCube& cube)
      : cube_(cube), header_({cube.side(), cube.side(), cube.frames()}) {}

  uint64_t size_bytes() const { return header_.file_bytes(); }
  uint64_t words() const { return size_bytes() / sizeof(uint32_t); }
  // In which word of the file a pixel is.
  uint64_t word_of(uint64_t pixel) const {
    return header_.text().size() / sizeof(uint32_t) + pixel;
  }
  // As it lies in the file. REQUIRES: index < words()
  uint32_t word(uint64_t index) const;
  // The pixel in a word: FITS has the highest byte first.
  static uint32_t pixel_in(uint32_t word) {
    return std::endian::native == std::endian::little ? __builtin_bswap32(word) : word;
  }

 private:
  const ImageCube& cube_;
  FitsHeader header_;
};

}  // namespace outcore::bench
