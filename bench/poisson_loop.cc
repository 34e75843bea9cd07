#include "bench/poisson_loop.h"

#include <atomic>
#include <bit>
#include <cerrno>

#include "cli/text.h"

namespace outcore::bench {

Status PoissonFound::check(const PoissonFound& expected) const {
  if (*this == expected) return {};
  return Error{EILSEQ, cli::format("gosa is %.9g and must be %.9g, or p is not what it must be",
                                   gosa, expected.gosa)};
}

PoissonFound PoissonLoop::finish(const float* p) const {
  std::atomic<uint64_t> sum{0};
  on_threads(threads_, [&](unsigned t) {
    uint64_t part = 0;
    for (uint64_t at = grid_.cells() * t / threads_; at < grid_.cells() * (t + 1) / threads_; ++at)
      part += mix(at * 0x1'0000'0001 + std::bit_cast<uint32_t>(p[at]));
    sum += part;
  });
  return {gosa_, sum.load()};
}

PoissonFound PoissonLoop::compute(const PoissonGrid& grid, unsigned loops, unsigned threads) {
  std::vector<float> p(grid.cells()), wrk2(grid.cells());
  for (uint64_t at = 0; at < p.size(); ++at) p[at] = grid.first_value(PoissonGrid::kP, at);
  const auto read = [&grid](unsigned array, uint64_t at) { return grid.first_value(array, at); };
  PoissonLoop loop(grid, loops, threads);
  loop.run(p.data(), wrk2.data(), read, [](uint64_t) {});
  return loop.finish(p.data());
}

}  // namespace outcore::bench
