// jacobi: Poisson's equation by Jacobi's iteration with 19 points, over the fourteen arrays of the
// Himeno benchmark.
//
// As there, the grid is about 1 : 1 : 2. An answer is compared bit by bit with that of the same
// code in ordinary memory (poisson_loop.h).
#include <memory>
#include <optional>

#include "bench/check.h"
#include "bench/fresh_workload.h"
#include "bench/poisson_loop.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

class Jacobi : public FreshWorkload {
 public:
  explicit Jacobi(const Options& options)
      : FreshWorkload(options, "jacobi"),
        grid_(PoissonGrid::fitting(options.size_bytes)),
        loops_(options.loops == 0 ? kJacobiPasses : options.loops) {}

  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  PoissonGrid grid_;
  unsigned loops_;
  std::optional<PoissonFound> expected_;
};

Status Jacobi::run(Stage& stage) {
  PoissonLoop loop(grid_, loops_, options_.threads);
  if (Status s = stage.settle(); !s) return s;
  const auto mapped = map_all(stage);
  if (!mapped) return mapped.error();
  BENCH_CHECK(mapped->size() >= PoissonGrid::kArrays * grid_.array_bytes());
  const auto array = [&](unsigned name) {
    return reinterpret_cast<float*>(mapped->data() + name * grid_.array_bytes());
  };
  loop.make(array);
  const float* const all = array(0);
  const uint64_t step = grid_.array_bytes() / sizeof(float);
  const auto read = [all, step](unsigned name, uint64_t at) { return all[name * step + at]; };
  if (Status s = stage.start(loop.points_in_all()); !s) return s;
  loop.run(array(PoissonGrid::kP), array(PoissonGrid::kWrk2), read,
           [&](uint64_t points) { stage.progress(points); });
  stage.stop();
  const PoissonFound found = loop.finish(array(PoissonGrid::kP));
  RunResult& result = stage.result();
  result.extra["gosa"] = found.gosa;
  result.extra["p_hash"] = found.hash;
  result.extra["mflops"] = loop.operations() / result.seconds * 1e-6;
  result.extra["grid"] = cli::format("%llux%llux%llu", static_cast<unsigned long long>(grid_.i),
                                     static_cast<unsigned long long>(grid_.j),
                                     static_cast<unsigned long long>(grid_.k));
  return stage.finish(loop.operations(), "flop/s");
}

Status Jacobi::check(const RunResult& result) {
  if (result.is_stopped) return {};
  if (!expected_) expected_ = PoissonLoop::compute(grid_, loops_, options_.threads);
  const PoissonFound found{result.extra.value("gosa", 0.0),
                           result.extra.value("p_hash", uint64_t{0})};
  return found.check(*expected_);
}

}  // namespace

std::unique_ptr<Workload> make_jacobi(const Options& options) {
  return std::make_unique<Jacobi>(options);
}

}  // namespace outcore::bench
