// What `outcore bench images` is made of: medians, and vectors through a cube of images; and that a
// damaged file is found.
#include <functional>

#include "bench/image_cube.h"
#include "cli/tests/damaged_bench.h"

namespace outcore::cli {
namespace {

TEST(ImageCube, TheMedianIsTheValueInTheMiddle) {
  const auto median = [](std::vector<uint32_t> values) { return bench::median_of(values); };
  EXPECT_EQ(median({7}), 7U);
  EXPECT_EQ(median({9, 1, 5}), 5U);
  EXPECT_EQ(median({4, 1, 3, 2}), 2U);
  EXPECT_EQ(median({3, 3, 3, 900'000, 0}), 3U);
}

TEST(ImageCube, AVectorMeetsEachFrameOnceAtMostInsideAndInOrder) {
  const bench::ImageCube cube(4 << 20, 1);
  EXPECT_EQ(cube.side(), 128U);
  EXPECT_EQ(cube.frames(), 64U);
  bench::Random random(4);
  uint64_t pixels = 0;
  for (int i = 0; i < 500; ++i) {
    const bench::SkyVector vector(cube, random);
    std::vector<uint64_t> frames;
    vector.for_each_pixel([&](uint64_t index) { frames.push_back(index / (128 * 128)); });
    ASSERT_FALSE(frames.empty());
    EXPECT_LT(frames.back(), cube.frames());
    EXPECT_TRUE(std::adjacent_find(frames.begin(), frames.end(), std::greater_equal<>()) ==
                frames.end());
    pixels += frames.size();
  }
  EXPECT_GT(pixels, 500 * cube.frames() / 4);
}

class ImagesFile : public DamagedBench {};

TEST_F(ImagesFile, ThatWasDamagedIsFound) {
  const std::string work = "images --size 2M --touches 20";
  ASSERT_EQ(bench(work).status, 0);
  damage("outcore-bench-images-2097152-1.dat");
  const Outcome outcome = bench(work);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("other pixels"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace outcore::cli
