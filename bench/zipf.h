// Zipf: ranks in [0, n), rank r with a probability proportional to 1 / (r + 1)^theta.
#pragma once

#include <cmath>
#include <cstdint>

#include "bench/check.h"
#include "bench/random.h"

namespace outcore::bench {

// After Gray et al., "Quickly generating billion-record synthetic databases" (1994), as YCSB has
// it. Constant time a number. Read by any thread; each passes its own Random. REQUIRES: 0 < theta
// < 1.
class Zipf {
 public:
  Zipf(uint64_t n, double theta) : n_(static_cast<double>(n)), theta_(theta), zeta_(zeta(n)) {
    BENCH_CHECK(n != 0 && theta > 0 && theta < 1);
    alpha_ = 1 / (1 - theta);
    const double zeta_of_two = 1 + std::pow(0.5, theta);
    eta_ = (1 - std::pow(2 / n_, 1 - theta)) / (1 - zeta_of_two / zeta_);
  }
  uint64_t next(Random& random) const {
    const double u = random.unit();
    const double scaled = u * zeta_;
    if (scaled < 1) return 0;
    if (scaled < 1 + std::pow(0.5, theta_)) return 1;
    const double rank = n_ * std::pow(eta_ * u - eta_ + 1, alpha_);
    return rank >= n_ ? static_cast<uint64_t>(n_) - 1 : static_cast<uint64_t>(rank);
  }

 private:
  // The sum of the first million terms, and the integral of the others.
  double zeta(uint64_t n) const {
    static constexpr uint64_t kExactMax = 1'000'000;
    const uint64_t exact = n < kExactMax ? n : kExactMax;
    double sum = 0;
    for (uint64_t i = 1; i <= exact; ++i) sum += std::pow(1 / static_cast<double>(i), theta_);
    const double rest = 1 - theta_;
    if (n > exact) sum += (std::pow(n_, rest) - std::pow(static_cast<double>(exact), rest)) / rest;
    return sum;
  }
  double n_, theta_, zeta_, alpha_ = 0, eta_ = 0;
};

}  // namespace outcore::bench
