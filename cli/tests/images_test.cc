// What `outcore bench images` is made of: medians, vectors through a cube of images, and a FITS
// file; and that a damaged one is found.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include "bench/image_file.h"
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

// Cards by the rules of the standard, not by the code that writes them.
std::map<std::string, std::string> cards_of(const std::string& text) {
  std::map<std::string, std::string> cards;
  for (size_t at = 0; at < text.size(); at += 80) {
    const std::string card = text.substr(at, 80);
    const std::string keyword = card.substr(0, card.find_first_of(" ="));
    const std::string value = card.substr(8, 2) == "= " ? card.substr(10, 20) : "";
    cards[keyword] = value.substr(std::min(value.size(), value.find_first_not_of(' ')));
    if (keyword == "END") return cards;
  }
  return {};
}

TEST(FitsHeader, SaysWhatFollowsInCardsOf80Characters) {
  const bench::FitsHeader header({512, 256, 7});
  const std::string& text = header.text();
  EXPECT_EQ(text.size() % 2880, 0U);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  std::map<std::string, std::string> cards = cards_of(text);
  EXPECT_EQ(text.substr(0, 30), "SIMPLE  =                    T");
  EXPECT_EQ(cards["BITPIX"], "32");
  EXPECT_EQ(cards["NAXIS"], "3");
  EXPECT_EQ(cards["NAXIS1"], "512");
  EXPECT_EQ(cards["NAXIS2"], "256");
  EXPECT_EQ(cards["NAXIS3"], "7");
  EXPECT_TRUE(cards.contains("END"));
  EXPECT_EQ(header.file_bytes() % 2880, 0U);
  EXPECT_LT(header.file_bytes() - text.size() - uint64_t{512} * 256 * 7 * 4, 2880U);
}

TEST(ImageFile, HasPixelsBehindTheHeaderTheHighestByteFirst) {
  const bench::ImageCube cube(256 << 10, 3);
  const bench::ImageFile file(cube);
  const uint64_t pixels = cube.side() * cube.side() * cube.frames();
  for (const uint64_t i : {uint64_t{0}, uint64_t{1}, pixels / 2, pixels - 1}) {
    const uint32_t word = file.word(file.word_of(i));
    unsigned char bytes[4];
    std::memcpy(bytes, &word, sizeof bytes);
    const uint32_t value = uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 |
                           uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
    EXPECT_EQ(value, cube.pixel(i));
    EXPECT_LT(value, uint32_t{1} << 31);
    EXPECT_EQ(bench::ImageFile::pixel_in(word), cube.pixel(i));
  }
  for (uint64_t i = file.word_of(pixels); i < file.words(); ++i) ASSERT_EQ(file.word(i), 0U);
}

class ImagesFile : public DamagedBench {};

TEST_F(ImagesFile, ThatWasDamagedIsFound) {
  const std::string work = "images --size 2M --touches 20";
  ASSERT_EQ(bench(work).status, 0);
  damage("outcore-bench-images-2097152-1.fits");
  const Outcome outcome = bench(work);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("other pixels"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace outcore::cli
