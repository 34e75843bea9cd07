#include "bench/gradient_passes.h"

#include <atomic>
#include <cerrno>
#include <cmath>

#include "bench/check.h"
#include "bench/threads.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr double kZetaTolerance = 1e-10;     // NPB's, relative
constexpr double kVectorTolerance = 1e-8;    // of an element, to the mean length of all
constexpr double kResidualTolerance = 1e-6;  // NPB tells it, and has no bound

bool is_near_zeta(double found, double right) {
  return std::abs(found - right) <= kZetaTolerance * std::abs(right);
}

}  // namespace

GradientsAnswer GradientsAnswer::compute(const SparseProblem& problem, const SparseVectors& sparse,
                                         unsigned passes, unsigned threads) {
  GradientsAnswer answer;
  std::vector<double>& x = answer.x;
  x.resize(problem.rows);
  std::vector<double> z(x), p(x), q(x), r(x), work(x);
  const ConjugateGradients::Vectors vectors{x.data(), z.data(), p.data(), q.data(), r.data()};
  const auto multiply = [&](const double* from, double* to) {
    sparse.multiply(from, to, work, threads);
  };
  ConjugateGradients gradients(problem.rows, threads);
  gradients.begin(vectors);
  for (unsigned pass = 0; pass < passes; ++pass)
    answer.zeta = gradients.run_pass(vectors, problem.shift, multiply).zeta;
  answer.published = passes == problem.passes ? problem.zeta : 0;
  return answer;
}

Status GradientsAnswer::check(const GradientsFound& found) const {
  const double right = published != 0 ? published : zeta;
  const bool has_solved = found.residual <= kResidualTolerance;
  if (is_near_zeta(found.zeta, right) && is_near_zeta(found.zeta, zeta) && found.is_intact &&
      has_solved && found.wrong == 0)
    return {};
  return Error{EILSEQ, cli::format("zeta is %.13g and must be %.13g; %llu elements of the vector "
                                   "are wrong, and the matrix is %s",
                                   found.zeta, right, static_cast<unsigned long long>(found.wrong),
                                   found.is_intact ? "as it was made" : "not as it was made")};
}

GradientPasses::GradientPasses(const SparseProblem& problem, unsigned passes, unsigned threads)
    : problem_(problem), passes_(passes), threads_(threads), gradients_(problem.rows, threads) {}

void GradientPasses::make(const Arrays& arrays, const SparseVectors& sparse) {
  vectors_ = arrays.vectors;
  matrix_.emplace(problem_, arrays.matrix, threads_);
  made_hash_ = matrix_->make(sparse);
  gradients_.begin(vectors_);
}

void GradientPasses::run(const std::function<void(uint64_t)>& see) {
  BENCH_CHECK(matrix_.has_value());
  const auto multiply = [&](const double* from, double* to) {
    matrix_->multiply(from, to);
    see(problem_.rows);
  };
  for (unsigned pass = 0; pass < passes_; ++pass)
    last_ = gradients_.run_pass(vectors_, problem_.shift, multiply);
}

uint64_t GradientPasses::count_wrong(const std::vector<double>& right) const {
  BENCH_CHECK(right.size() == problem_.rows);
  const double tolerance = kVectorTolerance / std::sqrt(static_cast<double>(problem_.rows));
  std::atomic<uint64_t> wrong{0};
  on_threads(threads_, [&](unsigned t) {
    uint64_t part = 0;
    const uint64_t end = problem_.rows * (t + 1) / threads_;
    for (uint64_t i = problem_.rows * t / threads_; i < end; ++i)
      part += !(std::abs(vectors_.x[i] - right[i]) <= tolerance);
    wrong += part;
  });
  return wrong.load();
}

GradientsFound GradientPasses::finish(const GradientsAnswer& answer) const {
  BENCH_CHECK(matrix_.has_value());
  return {last_.zeta, last_.residual, count_wrong(answer.x), matrix_->hash() == made_hash_};
}

// Two operations for an entry, and ten for a row in a step.
double GradientPasses::operations() const {
  return static_cast<double>(products()) * 2 * static_cast<double>(entries()) +
         static_cast<double>(passes_ * ConjugateGradients::kSteps * 10) *
             static_cast<double>(problem_.rows);
}

}  // namespace outcore::bench
