// cg: the conjugate gradients of the NAS Parallel Benchmarks: an eigenvalue of a sparse symmetric
// matrix, by power iteration, in which systems of equations are solved.
//
// The matrix is NPB's own, and of the classes zeta must be the published one. Whatever the size,
// the vector and zeta must be those of the same iteration without the matrix, in ordinary memory,
// by the vectors that the matrix is a sum of; and the matrix must be what it was made to be, bit by
// bit.
#include <memory>
#include <optional>

#include "bench/array_layout.h"
#include "bench/check.h"
#include "bench/fresh_workload.h"
#include "bench/gradient_passes.h"

namespace outcore::bench {
namespace {

SparseProblem problem_for(const Options& options) {
  const auto of_class = SparseProblem::of_class(options.nas_class);
  return of_class ? *of_class : SparseProblem::fitting(options.size_bytes);
}

class PowerIteration : public FreshWorkload {
 public:
  explicit PowerIteration(const Options& options)
      : FreshWorkload(options, "gradients"),
        problem_(problem_for(options)),
        passes_(options.loops == 0 ? problem_.passes : options.loops) {
    BENCH_CHECK(problem_.size_bytes() <= options.size_bytes);
  }

  Status prepare() override;
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  Result<GradientPasses::Arrays> map(Stage& stage) const;

  SparseProblem problem_;
  unsigned passes_;
  // Made before the first run; all runs inherit them.
  std::unique_ptr<SparseVectors> sparse_;
  std::optional<GradientsAnswer> expected_;
};

Status PowerIteration::prepare() {
  if (Status s = FreshWorkload::prepare(); !s) return s;
  if (!sparse_) sparse_ = std::make_unique<SparseVectors>(problem_);
  if (!expected_)
    expected_ = GradientsAnswer::compute(problem_, *sparse_, passes_, making_threads());
  return {};
}

Result<GradientPasses::Arrays> PowerIteration::map(Stage& stage) const {
  const auto mapped = map_all(stage);
  if (!mapped) return mapped.error();
  ArrayLayout layout;
  std::byte* const base = mapped->data();
  GradientPasses::Arrays all{};
  const auto doubles = [&](uint64_t count) {
    return reinterpret_cast<double*>(base + layout.add<double>(count));
  };
  all.matrix.values = doubles(problem_.entries_max());
  all.matrix.columns =
      reinterpret_cast<uint32_t*>(base + layout.add<uint32_t>(problem_.entries_max()));
  all.matrix.starts = reinterpret_cast<uint64_t*>(base + layout.add<uint64_t>(problem_.rows + 1));
  for (double** const vector :
       {&all.vectors.x, &all.vectors.z, &all.vectors.p, &all.vectors.q, &all.vectors.r})
    *vector = doubles(problem_.rows);
  BENCH_CHECK(layout.size_bytes() <= mapped->size());
  return all;
}

Status PowerIteration::run(Stage& stage) {
  BENCH_CHECK(sparse_ && expected_);
  GradientPasses passes(problem_, passes_, options_.threads);
  if (Status s = stage.settle(); !s) return s;
  const Result<GradientPasses::Arrays> mapped = map(stage);
  if (!mapped) return mapped.error();
  passes.make(mapped.value(), *sparse_);
  if (Status s = stage.start(passes.rows_in_all()); !s) return s;
  passes.run([&](uint64_t rows) { stage.progress(rows); });
  stage.stop();
  const GradientsFound found = passes.finish(*expected_);
  auto& extra = stage.result().extra;
  extra["rows"] = problem_.rows;
  extra["entries"] = passes.entries();
  extra["zeta"] = found.zeta;
  extra["residual"] = found.residual;
  extra["is_intact"] = found.is_intact;
  extra["wrong"] = found.wrong;
  return stage.finish(passes.operations(), "flop/s");
}

Status PowerIteration::check(const RunResult& result) {
  if (result.is_stopped) return {};
  const GradientsFound found{result.extra.value("zeta", 0.0), result.extra.value("residual", 1.0),
                             result.extra.value("wrong", uint64_t{1}),
                             result.extra.value("is_intact", false)};
  return expected_->check(found);
}

}  // namespace

std::unique_ptr<Workload> make_power_iteration(const Options& options) {
  return std::make_unique<PowerIteration>(options);
}

}  // namespace outcore::bench
