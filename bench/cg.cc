// cg: the conjugate gradients of the NAS Parallel Benchmarks: an eigenvalue of a sparse symmetric
// matrix, by power iteration, in which systems of equations are solved.
//
// The matrix is NPB's own, and of the classes zeta must be the published one. Whatever the size,
// the vector and zeta must be those of the same iteration without the matrix, in ordinary memory,
// by the vectors that the matrix is a sum of; and the matrix must be what it was made to be, bit by
// bit.
#include <atomic>
#include <cerrno>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "bench/array_layout.h"
#include "bench/check.h"
#include "bench/conjugate_gradients.h"
#include "bench/fresh_workload.h"
#include "bench/sparse_matrix.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr double kZetaTolerance = 1e-10;     // NPB's, relative
constexpr double kVectorTolerance = 1e-8;    // of an element, to the mean length of all
constexpr double kResidualTolerance = 1e-6;  // NPB tells it, and has no bound

SparseProblem problem_for(const Options& options) {
  const auto of_class = SparseProblem::of_class(options.nas_class);
  return of_class ? *of_class : SparseProblem::fitting(options.size_bytes);
}

bool is_near_zeta(double found, double right) {
  return std::abs(found - right) <= kZetaTolerance * std::abs(right);
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
  struct Expected {
    std::vector<double> x;
    double zeta = 0;
  };
  struct Mapped {
    SparseMatrix::Arrays matrix;
    ConjugateGradients::Vectors vectors;
  };
  Expected iterate_in_memory() const;
  Result<Mapped> map(Stage& stage) const;
  uint64_t count_wrong(const double* x) const;

  SparseProblem problem_;
  unsigned passes_;
  // Made before the first run; all runs inherit them.
  std::unique_ptr<SparseVectors> sparse_;
  std::optional<Expected> expected_;
};

Status PowerIteration::prepare() {
  if (Status s = FreshWorkload::prepare(); !s) return s;
  if (!sparse_) sparse_ = std::make_unique<SparseVectors>(problem_);
  if (!expected_) expected_ = iterate_in_memory();
  return {};
}

PowerIteration::Expected PowerIteration::iterate_in_memory() const {
  const unsigned threads = making_threads();
  std::vector<double> x(problem_.rows), z(x), p(x), q(x), r(x), work(x);
  const ConjugateGradients::Vectors vectors{x.data(), z.data(), p.data(), q.data(), r.data()};
  const auto multiply = [&](const double* from, double* to) {
    sparse_->multiply(from, to, work, threads);
  };
  ConjugateGradients gradients(problem_.rows, threads);
  gradients.begin(vectors);
  Expected expected;
  for (unsigned pass = 0; pass < passes_; ++pass)
    expected.zeta = gradients.run_pass(vectors, problem_.shift, multiply).zeta;
  expected.x = std::move(x);
  return expected;
}

Result<PowerIteration::Mapped> PowerIteration::map(Stage& stage) const {
  const auto mapped = map_all(stage);
  if (!mapped) return mapped.error();
  ArrayLayout layout;
  std::byte* const base = mapped->data();
  Mapped all{};
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

uint64_t PowerIteration::count_wrong(const double* x) const {
  const double tolerance = kVectorTolerance / std::sqrt(static_cast<double>(problem_.rows));
  std::atomic<uint64_t> wrong{0};
  on_threads(options_.threads, [&](unsigned t) {
    uint64_t part = 0;
    const uint64_t end = problem_.rows * (t + 1) / options_.threads;
    for (uint64_t i = problem_.rows * t / options_.threads; i < end; ++i)
      part += !(std::abs(x[i] - expected_->x[i]) <= tolerance);
    wrong += part;
  });
  return wrong.load();
}

Status PowerIteration::run(Stage& stage) {
  BENCH_CHECK(sparse_ && expected_);
  ConjugateGradients gradients(problem_.rows, options_.threads);
  if (Status s = stage.settle(); !s) return s;
  const Result<Mapped> mapped = map(stage);
  if (!mapped) return mapped.error();
  const ConjugateGradients::Vectors vectors = mapped.value().vectors;
  SparseMatrix matrix(problem_, mapped.value().matrix, options_.threads);
  const uint64_t made_hash = matrix.make(*sparse_);
  gradients.begin(vectors);
  const auto multiply = [&](const double* from, double* to) {
    matrix.multiply(from, to);
    stage.progress(problem_.rows);
  };
  ConjugateGradients::Pass last{};
  const uint64_t products = uint64_t{passes_} * ConjugateGradients::kProducts;
  if (Status s = stage.start(products * problem_.rows); !s) return s;
  for (unsigned pass = 0; pass < passes_; ++pass)
    last = gradients.run_pass(vectors, problem_.shift, multiply);
  stage.stop();
  auto& extra = stage.result().extra;
  extra["rows"] = problem_.rows;
  extra["entries"] = matrix.entries();
  extra["zeta"] = last.zeta;
  extra["residual"] = last.residual;
  extra["is_intact"] = matrix.hash() == made_hash;
  extra["wrong"] = count_wrong(vectors.x);
  // Two operations for an entry, and ten for a row in a step.
  return stage.finish(static_cast<double>(products) * 2 * static_cast<double>(matrix.entries()) +
                          static_cast<double>(passes_ * ConjugateGradients::kSteps * 10) *
                              static_cast<double>(problem_.rows),
                      "flop/s");
}

Status PowerIteration::check(const RunResult& result) {
  if (result.is_stopped) return {};
  const double zeta = result.extra.value("zeta", 0.0);
  const bool is_published = problem_.zeta != 0 && passes_ == problem_.passes;
  const double right = is_published ? problem_.zeta : expected_->zeta;
  const bool is_intact = result.extra.value("is_intact", false);
  const uint64_t wrong = result.extra.value("wrong", uint64_t{1});
  const bool has_solved = result.extra.value("residual", 1.0) <= kResidualTolerance;
  if (is_near_zeta(zeta, right) && is_near_zeta(zeta, expected_->zeta) && is_intact && has_solved &&
      wrong == 0)
    return {};
  return Error{EILSEQ, cli::format("zeta is %.13g and must be %.13g; %llu elements of the vector "
                                   "are wrong, and the matrix is %s",
                                   zeta, right, static_cast<unsigned long long>(wrong),
                                   is_intact ? "as it was made" : "not as it was made")};
}

}  // namespace

std::unique_ptr<Workload> make_power_iteration(const Options& options) {
  return std::make_unique<PowerIteration>(options);
}

}  // namespace outcore::bench
