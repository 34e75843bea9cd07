// ImageCube: a series of images of one part of the sky, as surveys take them to find what moves:
// frames of 32-bit pixels, one after the other, row by row. Any thread.
//
// A pixel is noise, and on some places a star, the same in all frames; it is computed from its
// place, so that whatever is read can be compared.
#pragma once

#include <cstdint>
#include <span>

#include "bench/random.h"

namespace outcore::bench {

class ImageCube {
 public:
  static constexpr uint64_t kBytesMin = uint64_t{64} << 10;

  // Square frames whose side is a power of two, such that there are a quarter as many frames as a
  // side has pixels, up to twice as many.
  // REQUIRES: size_bytes >= kBytesMin
  ImageCube(uint64_t size_bytes, uint64_t seed);

  uint64_t side() const { return side_; }
  uint64_t frames() const { return frames_; }
  uint64_t index_of(uint64_t x, uint64_t y, uint64_t frame) const {
    BENCH_CHECK(x < side_ && y < side_ && frame < frames_);
    return (frame * side_ + y) * side_ + x;
  }
  // What was made there: below 2^31, so that signed numbers hold it.
  uint32_t pixel(uint64_t index) const;

 private:
  uint64_t side_ = 16, frames_;
  uint64_t noise_key_, star_key_;
};

// SkyVector: a straight line through space and time, on which a moving object would be: a point in
// one frame, and how far it moves from frame to frame.
class SkyVector {
 public:
  // Goes through a random point with a random slope, at most a frame's side in all the time.
  SkyVector(const ImageCube& cube, Random& random);
  // Calls see(index of the pixel) for all frames in which it is inside, in order; at least one.
  template <typename See>
  void for_each_pixel(See see) const {
    for (uint64_t frame = 0; frame < cube_.frames(); ++frame) {
      const int64_t x = at(x_, slope_x_, frame), y = at(y_, slope_y_, frame);
      const auto side = static_cast<int64_t>(cube_.side());
      if (x < 0 || y < 0 || x >= side || y >= side) continue;
      see(cube_.index_of(static_cast<uint64_t>(x), static_cast<uint64_t>(y), frame));
    }
  }

 private:
  // Places are in 65,536ths of a pixel: whole numbers, which are the same everywhere.
  static constexpr int64_t kFraction = 65536;
  int64_t at(int64_t start, int64_t slope, uint64_t frame) const {
    return (start + slope * (static_cast<int64_t>(frame) - frame_)) >> 16;
  }

  const ImageCube& cube_;
  int64_t frame_, x_, y_, slope_x_, slope_y_;
};

// The value in the middle; of an even number the lower of the two. Changes the order.
// REQUIRES: there is a value
uint32_t median_of(std::span<uint32_t> values);

}  // namespace outcore::bench
