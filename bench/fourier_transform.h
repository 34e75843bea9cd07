// FourierTransform: the discrete transform of a grid along its three sides, in place.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "bench/complex_number.h"
#include "bench/fourier_grid.h"

namespace outcore::bench {

// One thread calls; it starts the others. What it allocates it does when it is made. Lines are
// taken by sixteen, as NPB does, so that what lies side by side is used together.
class FourierTransform {
 public:
  static constexpr uint64_t kLines = 16;

  // REQUIRES: the sides are powers of two, FourierGrid::kSideMin or more; threads != 0
  FourierTransform(const FourierGrid& grid, unsigned threads);

  // Not divided by the number of points. `see` is told by the threads how many points are done:
  // three times as many as there are.
  void forward(Complex* u, const std::function<void(uint64_t)>& see) { run(u, false, see); }
  void inverse(Complex* u, const std::function<void(uint64_t)>& see) { run(u, true, see); }

 private:
  struct Buffers {
    std::vector<Complex> a, b;  // the longest lines, side by side
  };
  void run(Complex* u, bool is_inverse, const std::function<void(uint64_t)>& see);
  // Lines along a side: element i of line l at first + i * step + l * line_step.
  void run_lines(Complex* first, unsigned side, uint64_t step, uint64_t line_step, bool is_inverse,
                 Buffers& buffers) const;
  void run_plane(Complex* plane, bool is_inverse, Buffers& buffers) const;

  FourierGrid grid_;
  unsigned threads_;
  std::vector<Complex> roots_[3];  // exp(-2 pi i k / side), k < side / 2
  std::vector<Buffers> buffers_;   // of the threads
};

}  // namespace outcore::bench
