#include "bench/fourier_transform.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "bench/check.h"
#include "bench/threads.h"

namespace outcore::bench {
namespace {

// Stockham's transform, which sorts as it goes: in each step halves become neighbours. `stride` is
// how many numbers belong together: of each line one, and what has been sorted. The result is in
// what is returned: from or to.
Complex* transform_lines(Complex* from, Complex* to, uint64_t length, uint64_t lines,
                         const std::vector<Complex>& roots, bool is_inverse) {
  const uint64_t all = length;
  for (uint64_t stride = lines; length > 1; length /= 2, stride *= 2) {
    const uint64_t half = length / 2;
    for (uint64_t k = 0; k < half; ++k) {
      Complex root = roots[k * (all / length)];
      if (is_inverse) root.im = -root.im;
      const Complex *const low = from + k * stride, *const high = from + (k + half) * stride;
      Complex *const even = to + 2 * k * stride, *const odd = even + stride;
      for (uint64_t i = 0; i < stride; ++i) {
        even[i] = low[i] + high[i];
        odd[i] = (low[i] - high[i]) * root;
      }
    }
    std::swap(from, to);
  }
  return from;
}

}  // namespace

FourierTransform::FourierTransform(const FourierGrid& grid, unsigned threads)
    : grid_(grid), threads_(threads), buffers_(threads) {
  BENCH_CHECK(threads != 0);
  for (unsigned side = 0; side < 3; ++side) {
    const uint64_t n = grid.sides[side];
    BENCH_CHECK(std::has_single_bit(n) && n >= FourierGrid::kSideMin);
    for (uint64_t k = 0; k < n / 2; ++k) {
      const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
      roots_[side].push_back({std::cos(angle), std::sin(angle)});
    }
  }
  const uint64_t longest = *std::max_element(grid.sides.begin(), grid.sides.end());
  for (Buffers& buffers : buffers_) {
    buffers.a.resize(longest * kLines);
    buffers.b.resize(longest * kLines);
  }
}

void FourierTransform::run_lines(Complex* first, unsigned side, uint64_t step, uint64_t line_step,
                                 bool is_inverse, Buffers& buffers) const {
  const uint64_t length = grid_.sides[side];
  Complex* const a = buffers.a.data();
  for (uint64_t i = 0; i < length; ++i)
    for (uint64_t line = 0; line < kLines; ++line)
      a[i * kLines + line] = first[i * step + line * line_step];
  const Complex* const done =
      transform_lines(a, buffers.b.data(), length, kLines, roots_[side], is_inverse);
  for (uint64_t i = 0; i < length; ++i)
    for (uint64_t line = 0; line < kLines; ++line)
      first[i * step + line * line_step] = done[i * kLines + line];
}

void FourierTransform::run_plane(Complex* plane, bool is_inverse, Buffers& buffers) const {
  const uint64_t row = grid_.sides[0];
  for (uint64_t y = 0; y < grid_.sides[1]; y += kLines)
    run_lines(plane + y * row, 0, 1, row, is_inverse, buffers);
  for (uint64_t x = 0; x < row; x += kLines) run_lines(plane + x, 1, row, 1, is_inverse, buffers);
}

void FourierTransform::run(Complex* u, bool is_inverse, const std::function<void(uint64_t)>& see) {
  const auto [row, rows, planes] = grid_.sides;
  on_threads(threads_, [&, planes = planes](unsigned t) {
    for (uint64_t z = planes * t / threads_; z < planes * (t + 1) / threads_; ++z) {
      run_plane(u + z * grid_.plane(), is_inverse, buffers_[t]);
      see(2 * grid_.plane());
    }
  });
  on_threads(threads_, [&, row = row, rows = rows, planes = planes](unsigned t) {
    for (uint64_t y = rows * t / threads_; y < rows * (t + 1) / threads_; ++y) {
      for (uint64_t x = 0; x < row; x += kLines)
        run_lines(u + y * row + x, 2, grid_.plane(), 1, is_inverse, buffers_[t]);
      see(row * planes);
    }
  });
}

}  // namespace outcore::bench
