// What `outcore bench ft` is made of: a transform of a grid, which must be that of the definition,
// and a probe of the last state; that checksums are the published ones, and damaged data is found.
#include <cmath>
#include <numbers>

#include "bench/fourier_probe.h"
#include "bench/fourier_transform.h"
#include "bench/published_checksums.h"
#include "cli/tests/disturbed_bench.h"

namespace outcore::cli {
namespace {

using bench::Complex;
using bench::FourierGrid;
using bench::FourierProbe;
using bench::FourierTransform;

class Fourier : public testing::Test {
 protected:
  std::vector<Complex> first_state() const {
    std::vector<Complex> u;
    for (uint64_t z = 0; z < grid_.sides[2]; ++z)
      grid_.make_plane(z, [&](uint64_t, Complex value) { u.push_back(value); });
    return u;
  }
  // One number of the transform, as the definition says.
  Complex wave(const std::vector<Complex>& u, std::array<uint64_t, 3> k) const {
    Complex sum{};
    for (uint64_t i = 0; i < u.size(); ++i) {
      const std::array<uint64_t, 3> at = {i % grid_.sides[0], i / grid_.sides[0] % grid_.sides[1],
                                          i / grid_.plane()};
      double turns = 0;
      for (size_t s = 0; s < 3; ++s)
        turns += static_cast<double>(k[s] * at[s] % grid_.sides[s]) /
                 static_cast<double>(grid_.sides[s]);
      const double angle = -2 * std::numbers::pi * turns;
      sum = sum + u[i] * Complex{std::cos(angle), std::sin(angle)};
    }
    return sum;
  }
  static void expect_near(Complex a, Complex b, double tolerance) {
    EXPECT_NEAR(a.re, b.re, tolerance);
    EXPECT_NEAR(a.im, b.im, tolerance);
  }
  // The last state after so many passes, not divided by the points.
  std::vector<Complex> solve(unsigned passes) const {
    std::vector<Complex> u = first_state();
    FourierTransform transform(grid_, 2);
    transform.forward(u.data(), [](uint64_t) {});
    for (uint64_t i = 0; i < u.size(); ++i)
      u[i] =
          u[i] * (FourierGrid::factor(i % grid_.sides[0], grid_.sides[0], passes) *
                  FourierGrid::factor(i / grid_.sides[0] % grid_.sides[1], grid_.sides[1], passes) *
                  FourierGrid::factor(i / grid_.plane(), grid_.sides[2], passes));
    transform.inverse(u.data(), [](uint64_t) {});
    return u;
  }

  FourierGrid grid_{{64, 32, 16}, 6};
};

TEST_F(Fourier, IsTheTransformOfItsDefinition) {
  const std::vector<Complex> first = first_state();
  std::vector<Complex> u = first;
  FourierTransform transform(grid_, 3);
  std::atomic<uint64_t> seen{0};
  transform.forward(u.data(), [&](uint64_t points) { seen += points; });
  EXPECT_EQ(seen, 3 * grid_.points());
  for (const auto& k : {std::array<uint64_t, 3>{0, 0, 0},
                        {1, 0, 0},
                        {0, 1, 0},
                        {0, 0, 1},
                        {63, 31, 15},
                        {17, 9, 4},
                        {32, 16, 8}})
    expect_near(u[k[0] + k[1] * grid_.sides[0] + k[2] * grid_.plane()], wave(first, k), 1e-8);
}

TEST_F(Fourier, IsUndoneByItsInverseAndKeepsTheSumOfSquares) {
  const std::vector<Complex> first = first_state();
  std::vector<Complex> u = first;
  FourierTransform transform(grid_, 2);
  transform.forward(u.data(), [](uint64_t) {});
  double before = 0, after = 0;
  for (const Complex& c : first) before += c.re * c.re + c.im * c.im;
  for (const Complex& c : u) after += c.re * c.re + c.im * c.im;
  const auto points = static_cast<double>(grid_.points());
  EXPECT_NEAR(after / points, before, before * 1e-12);
  transform.inverse(u.data(), [](uint64_t) {});
  for (size_t i = 0; i < u.size(); ++i) expect_near(u[i] * (1 / points), first[i], 1e-12);
}

TEST_F(Fourier, IsTheSameWithAnyThreads) {
  std::vector<Complex> one = first_state(), other = one;
  FourierTransform(grid_, 1).forward(one.data(), [](uint64_t) {});
  FourierTransform(grid_, 5).forward(other.data(), [](uint64_t) {});
  for (size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one[i].re, other[i].re);
    ASSERT_EQ(one[i].im, other[i].im);
  }
}

TEST_F(Fourier, HasAProbeThatFindsOneChangedNumber) {
  for (const unsigned passes : {1U, 6U, 100U}) {
    const FourierProbe probe(grid_, passes);
    std::vector<Complex> u = solve(passes);
    const Complex expected = probe.expected(2);
    const auto distance = [&] {
      const Complex away = probe.found(u.data(), 2) - expected;
      return std::hypot(away.re, away.im);
    };
    EXPECT_LT(distance(), probe.tolerance() / 100);
    u[12345].im += 1e-3 * static_cast<double>(grid_.points());
    EXPECT_GT(distance(), probe.tolerance());
  }
}

TEST(FourierGrid, FitsIntoTheSize) {
  for (const uint64_t size :
       {FourierGrid::kBytesMin, uint64_t{5} << 20, uint64_t{1} << 30, FourierGrid::kBytesMax}) {
    const FourierGrid grid = FourierGrid::fitting(size);
    EXPECT_LE(grid.size_bytes(), size);
    EXPECT_GT(grid.size_bytes() * 2, size);
    EXPECT_GE(grid.sides[2], FourierGrid::kSideMin);
  }
  for (const char* name : {"S", "W", "A", "B", "C"})
    EXPECT_EQ(bench::published_checksums(name).size(), FourierGrid::of_class(name)->passes);
  EXPECT_TRUE(bench::published_checksums("").empty());
}

class FourierRun : public DisturbedBench {};

TEST_F(FourierRun, HasTheSameAnswerInEveryMemoryAndWithAnyThreads) {
  const std::vector<Json> lines = lines_of_all_memories("ft --size 1M --passes 2");
  ASSERT_EQ(lines.size(), 6U);
  for (const auto& line : lines) {
    EXPECT_EQ(line["checked"], true);
    EXPECT_EQ(line["unit"], "flop/s");
    EXPECT_EQ(line["grid"], "32x32x16");
    for (const char* key : {"checksums_hash", "probe_re", "probe_im"})
      EXPECT_EQ(line[key], lines[0][key]) << key;
  }
}

TEST_F(FourierRun, OfAClassHasThePublishedChecksums) {
  const Outcome outcome = bench("ft --class S --memory dram --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto line = outcome.lines().front();
  const Complex last = bench::published_checksums("S").back();
  EXPECT_NEAR(line.value("checksum_re", 0.0), last.re, 1e-9);
  EXPECT_NEAR(line.value("checksum_im", 0.0), last.im, 1e-9);
  EXPECT_EQ(line["wrong"], 0);
}

// The state is made anew in each pass, and is wrong for a moment only.
TEST_F(FourierRun, OfDamagedWavesOrFactorsIsFound) {
  // 4 MiB of waves, as much of the state, and 2 MiB of factors.
  for (const off_t offset : {65536, (8 << 20) + 65536}) {
    const Outcome outcome = disturbed("ft --size 10M --passes 5 --threads 2 --overwrite", offset);
    EXPECT_EQ(outcome.status, 1) << offset;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("not what the first must become"), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace outcore::cli
