// FourierGrid: the problem of the 3-D Fourier transform of the NAS Parallel Benchmarks: its sizes,
// what it begins with, and how it evolves.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "bench/complex_number.h"
#include "bench/nas_random.h"

namespace outcore::bench {

// The diffusion equation on a periodic grid (NAS-95-020, section 2.3.4). Plain values; any thread.
struct FourierGrid {
  static constexpr uint64_t kSideMin = 16;
  static constexpr uint64_t kBytesMin = uint64_t{160} << 10;
  static constexpr uint64_t kBytesMax = uint64_t{16} << 40;

  std::array<uint64_t, 3> sides{};  // x, whose points lie side by side, y and z: powers of two
  unsigned passes = 0;

  // As NPB has it: S, W, A, B, C; nullopt: another.
  static constexpr std::optional<FourierGrid> of_class(std::string_view name);
  // The most points that fit, of which the number is a power of two; six passes.
  // REQUIRES: kBytesMin <= size_bytes <= kBytesMax
  static FourierGrid fitting(uint64_t size_bytes);

  constexpr uint64_t points() const { return sides[0] * sides[1] * sides[2]; }
  uint64_t plane() const { return sides[0] * sides[1]; }
  // Of two arrays of complex numbers and one of factors.
  uint64_t size_bytes() const;

  // Calls see(index within the plane, value) for what the plane z begins with. REQUIRES: z is one
  template <typename See>
  void make_plane(uint64_t z, See see) const {
    BENCH_CHECK(z < sides[2]);
    NasRandom random;
    random.skip(2 * plane() * z);
    for (uint64_t i = 0; i < plane(); ++i) {
      const double re = random.unit();
      see(i, Complex{re, random.unit()});
    }
  }
  // By what a pass multiplies the wave of number k along a side: a point's factor is the product of
  // its three. REQUIRES: k < side
  static double factor(uint64_t k, uint64_t side, unsigned passes = 1);
  // The point that a checksum has as its j-th, 1 … 1024.
  uint64_t checksum_point(uint64_t j) const {
    return j % sides[0] + sides[0] * (3 * j % sides[1]) + plane() * (5 * j % sides[2]);
  }
};

constexpr std::optional<FourierGrid> FourierGrid::of_class(std::string_view name) {
  struct GridClass {
    std::string_view name;
    FourierGrid grid;
  };
  constexpr GridClass kClasses[] = {{"S", {{64, 64, 64}, 6}},
                                    {"W", {{128, 128, 32}, 6}},
                                    {"A", {{256, 256, 128}, 6}},
                                    {"B", {{512, 256, 256}, 20}},
                                    {"C", {{512, 512, 512}, 20}}};
  for (const GridClass& one : kClasses)
    if (one.name == name) return one.grid;
  return std::nullopt;
}

}  // namespace outcore::bench
