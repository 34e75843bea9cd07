#include "bench/image_cube.h"

#include <algorithm>

#include "bench/check.h"

namespace outcore::bench {
namespace {

constexpr uint32_t kSkyBackground = 1000;
constexpr uint64_t kStarOneIn = 256;

}  // namespace

ImageCube::ImageCube(uint64_t size_bytes, uint64_t seed)
    : noise_key_(mix(mix(seed) + 1)), star_key_(mix(mix(seed) + 2)) {
  BENCH_CHECK(size_bytes >= kBytesMin);
  const uint64_t pixels = size_bytes / sizeof(uint32_t);
  while (2 * side_ * 2 * side_ * (2 * side_ / 4) <= pixels) side_ *= 2;
  frames_ = pixels / (side_ * side_);
}

uint32_t ImageCube::pixel(uint64_t index) const {
  const auto noise = static_cast<uint32_t>(mix(noise_key_ + index) >> 48);
  const uint64_t star = mix(star_key_ + index % (side_ * side_));
  const bool has_star = star % kStarOneIn == 0;
  return kSkyBackground + noise + (has_star ? static_cast<uint32_t>(star >> 40) : 0);
}

SkyVector::SkyVector(const ImageCube& cube, Random& random) : cube_(cube) {
  const uint64_t side = cube.side() * static_cast<uint64_t>(kFraction);
  const uint64_t slope_max = side / cube.frames();
  const auto slope = [&] {
    return static_cast<int64_t>(random.below(2 * slope_max + 1)) - static_cast<int64_t>(slope_max);
  };
  frame_ = static_cast<int64_t>(random.below(cube.frames()));
  x_ = static_cast<int64_t>(random.below(side));
  y_ = static_cast<int64_t>(random.below(side));
  slope_x_ = slope();
  slope_y_ = slope();
}

uint32_t median_of(std::span<uint32_t> values) {
  BENCH_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<int64_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace outcore::bench
