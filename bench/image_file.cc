#include "bench/image_file.h"

#include <cstring>

#include "bench/check.h"

namespace outcore::bench {

uint32_t ImageFile::word(uint64_t index) const {
  BENCH_CHECK(index < words());
  const uint64_t first = word_of(0);
  if (index < first) {
    uint32_t word = 0;
    std::memcpy(&word, header_.text().data() + index * sizeof word, sizeof word);
    return word;
  }
  const uint64_t pixel = index - first;
  const bool is_there = pixel < cube_.side() * cube_.side() * cube_.frames();
  return is_there ? pixel_in(cube_.pixel(pixel)) : 0;
}

}  // namespace outcore::bench
