#include "bench/matrices.h"

#include <cmath>

#include "bench/check.h"
#include "bench/threads.h"

namespace outcore::bench {

Matrices::Matrices(uint64_t b_bytes_max, uint64_t seed)
    : a_key_(mix(mix(seed) + 3)), b_key_(mix(mix(seed) + 4)) {
  BENCH_CHECK(b_bytes_max >= kBytesMin);
  const uint64_t numbers = b_bytes_max / sizeof(double);
  auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(numbers)));
  while (root * root > numbers) --root;  // which rounding may have made one too large
  side_ = root / kSideStep * kSideStep;
  BENCH_CHECK(side_ != 0 && size_bytes() <= b_bytes_max);
}

ProductCheck::ProductCheck(const Matrices& matrices, uint64_t seed) : matrices_(matrices) {
  const uint64_t side = matrices.side();
  BENCH_CHECK(side <= uint64_t{1} << 20);  // or the sums of is_right() would not fit
  Random random(mix(seed) + 5);
  for (unsigned v = 0; v < kVectors; ++v) {
    for (uint64_t j = 0; j < side; ++j)
      random_[v].push_back(static_cast<int64_t>(random.below(kNumbers)));
    b_times_random_[v].resize(side);
  }
  const unsigned threads = making_threads();
  on_threads(threads, [&](unsigned thread) {
    for (uint64_t k = thread; k < side; k += threads) {
      int64_t sums[kVectors] = {};
      for (uint64_t j = 0; j < side; ++j) {
        const int64_t number = matrices_.b(k, j);
        for (unsigned v = 0; v < kVectors; ++v) sums[v] += number * random_[v][j];
      }
      for (unsigned v = 0; v < kVectors; ++v) b_times_random_[v][k] = sums[v];
    }
  });
}

uint64_t ProductCheck::wrong_rows(uint64_t first_row, std::span<const double> c) const {
  const uint64_t side = matrices_.side();
  BENCH_CHECK(c.size() % side == 0 && first_row + c.size() / side <= side);
  uint64_t wrong = 0;
  for (uint64_t row = 0; row < c.size() / side; ++row)
    wrong += !is_right(first_row + row, c.data() + row * side);
  return wrong;
}

bool ProductCheck::is_right(uint64_t row, const double* c) const {
  const uint64_t side = matrices_.side();
  const double most = 64.0 * static_cast<double>(side);
  int64_t expected[kVectors] = {}, found[kVectors] = {};
  for (uint64_t k = 0; k < side; ++k) {
    // Sums of damaged numbers may be none that fit into a whole number, nor numbers at all.
    if (!(std::abs(c[k]) <= most) || std::trunc(c[k]) != c[k]) return false;
    const int64_t a = matrices_.a(row, k);
    for (unsigned v = 0; v < kVectors; ++v) {
      expected[v] += a * b_times_random_[v][k];
      found[v] += static_cast<int64_t>(c[k]) * random_[v][k];
    }
  }
  for (unsigned v = 0; v < kVectors; ++v)
    if (expected[v] != found[v]) return false;
  return true;
}

}  // namespace outcore::bench
