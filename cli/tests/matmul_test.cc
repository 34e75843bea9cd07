// What `outcore bench matmul` is made of: the product of a band, and the check of a product; that
// the processes of a run share B, and that a damaged B is found.
#include <limits>
#include <span>

#include "bench/band_product.h"
#include "bench/matrices.h"
#include "cli/tests/damaged_bench.h"

namespace outcore::cli {
namespace {

using bench::BandProduct;
using bench::Matrices;
using bench::ProductCheck;

constexpr uint64_t kSeed = 3;

class Product : public testing::Test {
 protected:
  // B as it would lie in the file.
  std::vector<double> b() const {
    std::vector<double> all;
    for (uint64_t k = 0; k < side_; ++k)
      for (uint64_t j = 0; j < side_; ++j) all.push_back(static_cast<double>(matrices_.b(k, j)));
    return all;
  }
  // As the definition says.
  std::vector<double> c() const {
    std::vector<double> all;
    for (uint64_t i = 0; i < side_; ++i)
      for (uint64_t j = 0; j < side_; ++j) {
        int64_t sum = 0;
        for (uint64_t k = 0; k < side_; ++k) sum += matrices_.a(i, k) * matrices_.b(k, j);
        all.push_back(static_cast<double>(sum));
      }
    return all;
  }
  // In three bands, none of which has a multiple of eight rows. `read` is told by each, added up.
  std::vector<double> in_bands(bool is_by_columns, uint64_t tile, uint64_t& read) const {
    const std::vector<double> factor = b();
    std::vector<double> all;
    const uint64_t ends[] = {0, 21, 22, side_};
    for (size_t band = 0; band < 3; ++band) {
      BandProduct product(matrices_, ends[band], ends[band + 1] - ends[band]);
      product.multiply(factor.data(), is_by_columns, tile, [&](uint64_t n) { read += n; });
      EXPECT_EQ(product.first_row(), all.size() / side_);
      all.insert(all.end(), product.c().begin(), product.c().end());
    }
    return all;
  }

  Matrices matrices_{uint64_t{47} << 10, kSeed};
  uint64_t side_ = matrices_.side();
};

TEST_F(Product, TheSideIsTheLargestMultipleOfEightThatFits) {
  EXPECT_EQ(side_, 72U);  // 47 KiB have room for 77
  EXPECT_EQ(Matrices(Matrices::kBytesMin, 1).side(), 64U);
  EXPECT_EQ(Matrices(uint64_t{2} << 30, 1).side(), 16384U);
}

TEST_F(Product, TheMatricesHaveAllNumbersFromMinusEightToSeven) {
  std::vector<uint64_t> counts(16);
  for (uint64_t i = 0; i < side_; ++i)
    for (uint64_t j = 0; j < side_; ++j) {
      ASSERT_GE(matrices_.a(i, j), -8);
      ASSERT_LE(matrices_.a(i, j), 7);
      ++counts.at(static_cast<size_t>(matrices_.b(i, j) + 8));
    }
  for (const uint64_t count : counts) EXPECT_GT(count, side_ * side_ / 32);
}

TEST_F(Product, IsTheSameInBothOrdersAndAllTilesAndReadsBOnce) {
  const std::vector<double> right = c();
  for (const bool is_by_columns : {false, true})
    for (const uint64_t tile : {0U, 8U, 40U, 72U}) {
      uint64_t read = 0;
      EXPECT_EQ(in_bands(is_by_columns, tile, read), right) << is_by_columns << " " << tile;
      EXPECT_EQ(read, 3 * side_ * side_);
    }
}

TEST_F(Product, ACheckFindsTheWrongRowsAndNoOthers) {
  const ProductCheck check(matrices_, kSeed);
  std::vector<double> product = c();
  EXPECT_EQ(check.wrong_rows(0, product), 0U);
  const std::span<const double> band = std::span(product).subspan(10 * side_, 5 * side_);
  EXPECT_EQ(check.wrong_rows(10, band), 0U);
  EXPECT_EQ(check.wrong_rows(11, band), 5U);
  product[10 * side_ + 3] += 1;
  EXPECT_EQ(check.wrong_rows(10, band), 1U);
  product[11 * side_] += 0.5;
  product[12 * side_] = 1e300;
  product[13 * side_] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(check.wrong_rows(10, band), 4U);
}

class MatmulRun : public DamagedBench {
 protected:
  static constexpr const char* kWork = "matmul --size 2M --threads 1 --processes 4";
  Outcome in(const std::string& memory, const std::string& more) const {
    return run("bench " + std::string(kWork) + " --json --dir " + dir() + " --memory " + memory +
               " " + more);
  }
};

TEST_F(MatmulRun, OfFourProcessesIsRightInAllMemoriesAndBothOrders) {
  for (const char* more : {"--order rows", "--order columns", "--order columns --tile 64"}) {
    const Outcome outcome = in("dram,mmap,outcore", std::string("--budget 4M ") + more);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    ASSERT_EQ(outcome.lines().size(), 3U);
    for (const auto& line : outcome.lines()) {
      EXPECT_EQ(line["checked"], true);
      EXPECT_EQ(line["rows"], 512);
      EXPECT_EQ(line["accessed_bytes"], 4 << 21);
      EXPECT_EQ(line["unit"], "flop/s");
    }
  }
}

TEST_F(MatmulRun, ReadsBOnceIfTheProcessesShareItAndOnceEachIfTheyDoNot) {
  for (const char* share : {"auto", "off"}) {
    const Outcome outcome = in("outcore", std::string("--budget 16M --share ") + share);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto line = outcome.lines().front();
    const bool is_shared = line.value("shared", false);
    EXPECT_EQ(is_shared, std::string(share) == "auto");
    const double times = line.value("read_bytes", 0.0) / (2 << 20);
    EXPECT_GE(times, is_shared ? 1.0 : 4.0);
    EXPECT_LE(times, is_shared ? 1.1 : 4.4);
  }
}

TEST_F(MatmulRun, LeavesNothingOfItsBufferAlsoIfItIsStopped) {
  const std::string folder = path("buffers");
  for (const char* more : {"--size 2M", "--size 64M --limit 0.1"}) {
    const Outcome outcome =
        outcome_of("OUTCORE_BUFFER_DIR=" + folder + " " + command_path() + " bench matmul " + more +
                   " --processes 2 --threads 1 --memory outcore --budget 8M --json --dir " + dir());
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(std::filesystem::is_directory(folder));
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << more;
  }
}

TEST_F(MatmulRun, OfADamagedFileIsFound) {
  const std::string work = "matmul --size 2M --threads 2";
  ASSERT_EQ(bench(work).status, 0);
  damage("outcore-bench-matrix-2097152-1.dat", 6);
  const Outcome outcome = bench(work);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("not those of the product"), std::string::npos) << outcome.err;
}

TEST_F(MatmulRun, WorksOfOtherKindsShareIfTheyAreAsked) {
  for (const char* work : {"random-io --touches 4000 --processes 2 --write-percent 20", "scan"}) {
    const Outcome outcome = run("bench " + std::string(work) + " --size 4M --budget 8M --json " +
                                "--share on --memory outcore --dir " + dir());
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.lines().front()["shared"], true);
    EXPECT_EQ(outcome.lines().front()["checked"], true);
  }
}

}  // namespace
}  // namespace outcore::cli
