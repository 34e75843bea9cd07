// FourierProbe: whether a grid is what its first state must have become, without a transform.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bench/complex_number.h"
#include "bench/fourier_grid.h"

namespace outcore::bench {

// All passes together are a linear map M of the first state u, by symmetric kernels along the three
// sides. So for a random r that is a product of numbers along the sides, (r, M u) must be (M r, u),
// and M r is computed side by side, by sums (after Freivalds 1979). A page with other numbers is
// found as surely as they differ by more than the rounding. Any thread.
class FourierProbe {
 public:
  FourierProbe(const FourierGrid& grid, unsigned passes);

  // (r, u / points) of what the inverse transform gave. REQUIRES: threads != 0
  Complex found(const Complex* u, unsigned threads) const;
  // The same of the first state, as it must be. REQUIRES: threads != 0
  Complex expected(unsigned threads) const;
  // How far they may be from each other: rounding errors are a ten-thousandth of it.
  double tolerance() const;

 private:
  using Sides = std::array<std::vector<double>, 3>;
  // The sum of plane(z, …) over all planes, in their order.
  template <typename Plane>
  Complex sum_of(Plane plane, unsigned threads) const;

  FourierGrid grid_;
  Sides random_, mapped_;
};

}  // namespace outcore::bench
