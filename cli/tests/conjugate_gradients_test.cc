// What `outcore bench cg` is made of: the matrix of the NAS Parallel Benchmarks and the vectors
// that it is a sum of, and the iteration, whose answer must be the published one; and that damaged
// data is found.
#include <algorithm>

#include "bench/conjugate_gradients.h"
#include "bench/sparse_matrix.h"
#include "cli/tests/disturbed_bench.h"

namespace outcore::cli {
namespace {

using bench::ConjugateGradients;
using bench::SparseMatrix;
using bench::SparseProblem;
using bench::SparseVectors;

class Gradients : public testing::Test {
 protected:
  struct Matrix {
    Matrix(const SparseProblem& problem, const SparseVectors& vectors, unsigned threads)
        : values(problem.entries_max()),
          columns(problem.entries_max()),
          starts(problem.rows + 1),
          made(problem, {values.data(), columns.data(), starts.data()}, threads),
          hash(made.make(vectors)) {}
    std::vector<double> values;
    std::vector<uint32_t> columns;
    std::vector<uint64_t> starts;
    SparseMatrix made;
    uint64_t hash;
  };
  // zeta and the last x.
  std::pair<double, std::vector<double>> iterate(unsigned threads, unsigned passes,
                                                 const ConjugateGradients::Multiply& multiply) {
    std::vector<double> x(problem_.rows), z(x), p(x), q(x), r(x);
    const ConjugateGradients::Vectors v{x.data(), z.data(), p.data(), q.data(), r.data()};
    ConjugateGradients gradients(problem_.rows, threads);
    gradients.begin(v);
    ConjugateGradients::Pass last{};
    for (unsigned pass = 0; pass < passes; ++pass)
      last = gradients.run_pass(v, problem_.shift, multiply);
    EXPECT_LT(last.residual, 1e-10);
    return {last.zeta, x};
  }

  SparseProblem problem_ = *SparseProblem::of_class("S");
  SparseVectors vectors_{problem_};
};

TEST_F(Gradients, GiveThePublishedZetaBitByBitWithAnyThreads) {
  std::vector<double> zetas;
  for (const unsigned threads : {1U, 3U}) {
    const Matrix matrix(problem_, vectors_, threads);
    zetas.push_back(iterate(threads, problem_.passes, [&](const double* from, double* to) {
                      matrix.made.multiply(from, to);
                    }).first);
  }
  EXPECT_NEAR(zetas[0], 8.5971775078648, 8.6e-10);
  EXPECT_EQ(zetas[0], zetas[1]);
}

TEST_F(Gradients, GiveTheSameWithoutTheMatrix) {
  std::vector<double> work(problem_.rows);
  const Matrix matrix(problem_, vectors_, 2);
  const auto by_vectors =
      iterate(2, 4, [&](const double* from, double* to) { vectors_.multiply(from, to, work, 2); });
  const auto by_matrix =
      iterate(2, 4, [&](const double* from, double* to) { matrix.made.multiply(from, to); });
  EXPECT_NEAR(by_vectors.first, by_matrix.first, 1e-11);
  for (uint64_t i = 0; i < problem_.rows; ++i)
    ASSERT_NEAR(by_vectors.second[i], by_matrix.second[i], 1e-12);
}

TEST_F(Gradients, HaveASymmetricMatrixWhoseRowsAreInOrder) {
  std::vector<SparseVectors::Entry> row, other;
  uint64_t entries = 0;
  for (uint64_t i = 0; i < problem_.rows; ++i) {
    vectors_.make_row(i, row);
    entries += row.size();
    for (size_t at = 1; at < row.size(); ++at) ASSERT_LT(row[at - 1].column, row[at].column);
    if (i % 100 != 0) continue;
    for (const auto& entry : row) {
      vectors_.make_row(entry.column, other);
      const auto mirrored =
          std::find_if(other.begin(), other.end(), [&](const auto& e) { return e.column == i; });
      ASSERT_NE(mirrored, other.end());
      ASSERT_NEAR(mirrored->value, entry.value, 1e-15);
    }
  }
  EXPECT_EQ(Matrix(problem_, vectors_, 2).made.entries(), entries);
  EXPECT_LE(entries, problem_.entries_max());
}

TEST_F(Gradients, HaveAMatrixOfWhichEveryChangeIsSeenAndNoneLeadsOutOfIt) {
  Matrix matrix(problem_, vectors_, 2);
  EXPECT_EQ(matrix.made.hash(), matrix.hash);
  const std::vector<double> x(problem_.rows, 1);
  std::vector<double> y(problem_.rows);
  const auto is_seen = [&](auto& place, auto value) {
    std::swap(place, value);
    const bool is_other = matrix.made.hash() != matrix.hash;
    matrix.made.multiply(x.data(), y.data());
    std::swap(place, value);
    return is_other;
  };
  EXPECT_TRUE(is_seen(matrix.values[1000], matrix.values[1000] * (1 + 1e-15)));
  EXPECT_TRUE(is_seen(matrix.columns[1000], uint32_t{0xFFFFFFFF}));
  EXPECT_TRUE(is_seen(matrix.starts[700], ~uint64_t{0}));
  EXPECT_TRUE(is_seen(matrix.starts[problem_.rows], uint64_t{3}));
  EXPECT_EQ(matrix.made.hash(), matrix.hash);
}

TEST(SparseProblem, FitsIntoTheSizeAndNearlyFillsIt) {
  for (const uint64_t size :
       {SparseProblem::kBytesMin, uint64_t{5} << 20, uint64_t{1} << 30, SparseProblem::kBytesMax}) {
    const SparseProblem problem = SparseProblem::fitting(size);
    EXPECT_LE(problem.size_bytes(), size);
    EXPECT_GE(problem.size_bytes(), size - 40000);
    EXPECT_GT(problem.rows, 2U * (problem.nonzeros + 1));
    EXPECT_LT(problem.rows * (problem.nonzeros + 1), uint64_t{1} << 32);
  }
}

class GradientsRun : public DisturbedBench {};

TEST_F(GradientsRun, HaveTheSameAnswerInEveryMemoryAndWithAnyThreads) {
  const std::vector<Json> lines = lines_of_all_memories("cg --size 2M --passes 1");
  ASSERT_EQ(lines.size(), 6U);
  for (const auto& line : lines) {
    EXPECT_EQ(line["checked"], true);
    EXPECT_EQ(line["is_intact"], true);
    EXPECT_EQ(line["unit"], "flop/s");
    for (const char* key : {"zeta", "residual", "rows", "entries"})
      EXPECT_EQ(line[key], lines[0][key]) << key;
  }
}

TEST_F(GradientsRun, OfAClassHaveThePublishedAnswer) {
  const Outcome outcome = bench("cg --class S --memory dram --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.lines().front()["rows"], 1400);
  EXPECT_EQ(outcome.lines().front()["variant"], "class S");
  EXPECT_NEAR(outcome.lines().front().value("zeta", 0.0), 8.5971775078648, 8.6e-10);
}

// The vectors are made anew in each step, and are wrong for a moment only.
TEST_F(GradientsRun, OfADamagedMatrixAreFound) {
  // Class S: 717 KB of values, 358 KB of columns, 11 KB of starts, and five vectors of as much.
  for (const off_t offset : {65536, 800000, 1081344}) {
    const Outcome outcome = disturbed("cg --class S --passes 40 --threads 2 --overwrite", offset);
    EXPECT_EQ(outcome.status, 1) << offset;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("zeta is"), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace outcore::cli
