// Arrays whose tiles are compressed: by any box, by several threads and processes, smaller on the
// disk; what is damaged is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "arrays/tests/container/processes.h"
#include "outcore/arrays.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kSide = 37;
const Dims kCube = {kSide, kSide, kSide};

double value_in_cube(uint64_t x, uint64_t y, uint64_t z) {
  return static_cast<double>(x * 10'000 + y * 100 + z) / 8;
}

std::vector<double> box_of(const Dims& at, const Dims& dims) {
  std::vector<double> box;
  for (uint64_t x = at[0]; x < at[0] + dims[0]; ++x)
    for (uint64_t y = at[1]; y < at[1] + dims[1]; ++y)
      for (uint64_t z = at[2]; z < at[2] + dims[2]; ++z) box.push_back(value_in_cube(x, y, z));
  return box;
}

ArrayOptions compressed(const std::string& how = "zstd", const Dims& tiles = {8, 16, 10}) {
  ArrayOptions options;
  options.tiles = tiles;
  options.compress = how;
  return options;
}

Status store(Arrays& out, const Dims& at, const Dims& dims) {
  return out.store("u", box_of(at, dims).data(), at, dims);
}

void expect_cube(const Arrays& in, const Dims& at = {0, 0, 0}, const Dims& dims = kCube) {
  std::vector<double> box(dims[0] * dims[1] * dims[2]);
  const Status s = in.load("u", box.data(), at, dims);
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(box, box_of(at, dims));
}

class CompressedArrays : public testing::Test {
 protected:
  Arrays make(const ArrayOptions& options, const std::string& uri) {
    Arrays out = Arrays::open(uri, ArraysMode::kWrite).value();
    const Status s = out.alloc<double>("u", kCube, options);
    EXPECT_TRUE(s.ok()) << s.message();
    return out;
  }
  uint64_t used_bytes() const {
    struct stat about {};
    EXPECT_EQ(::stat(path_.c_str(), &about), 0);
    return static_cast<uint64_t>(about.st_blocks) * 512;
  }
  const scene::Folder folder_;
  const std::string path_ = folder_.path() + "/a.oca";
};

TEST_F(CompressedArrays, AnyBoxComesBackOnFilesAndOtherStores) {
  for (const std::string& uri : {path_, "sparse:" + folder_.path() + "/s", std::string("memory:")})
    for (const char* how : {"lz4", "zstd", "zstd:1", "zstd:19"}) {
      SCOPED_TRACE(uri + " " + how);
      Arrays out = make(compressed(how), uri);
      // In pieces that share tiles, one after the other.
      for (uint64_t x = 0; x < kSide; x += 5)
        ASSERT_TRUE(store(out, {x, 0, 0}, {std::min<uint64_t>(5, kSide - x), kSide, kSide}).ok());
      expect_cube(out, {3, 4, 5}, {9, 20, 30});  // before it is finished, too
      ASSERT_TRUE(out.flush().ok());
      expect_cube(out);
      std::mt19937_64 random(1);
      for (int i = 0; i < 50; ++i) {
        Dims at(3), dims(3);
        for (int d = 0; d < 3; ++d) {
          at[d] = random() % kSide;
          dims[d] = 1 + random() % (kSide - at[d]);
        }
        expect_cube(out, at, dims);
      }
      ASSERT_TRUE(out.close().ok());
    }
}

TEST_F(CompressedArrays, WhatWasNotStoredReadsZero) {
  Arrays out = make(compressed(), path_);
  ASSERT_TRUE(store(out, {8, 16, 10}, {1, 1, 1}).ok());
  ASSERT_TRUE(out.close().ok());
  const Arrays in = Arrays::open(path_).value();
  std::vector<double> all(kSide * kSide * kSide);
  ASSERT_TRUE(in.load("u", all.data(), {0, 0, 0}, kCube).ok());
  EXPECT_EQ(all[(8 * kSide + 16) * kSide + 10], value_in_cube(8, 16, 10));
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](double x) { return x != 0; }), 1);
}

TEST_F(CompressedArrays, OneValueStaysAsItIsHoweverLarge) {
  const std::vector<char> large(100'000, 'x');
  {
    Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
    for (const uint32_t bytes : {1u, 600u, 100'000u}) {
      const std::string size = std::to_string(bytes);
      ASSERT_TRUE(
          out.store_whole(size, {"V" + size, bytes}, {}, large.data(), compressed("zstd", {}))
              .ok());
      ASSERT_TRUE(out.alloc("room " + size, {"V" + size, bytes}, {}, compressed("lz4", {})).ok());
    }
    ASSERT_TRUE(out.close().ok());
  }
  const auto in = Arrays::open(path_);
  ASSERT_TRUE(in.ok()) << in.message();
  std::vector<char> there(large.size());
  ASSERT_TRUE(in->load_box("100000", {"V100000", 100'000}, there.data(), {}, {}).ok());
  EXPECT_EQ(there, large);
  EXPECT_EQ(in->info("600")->compress, "");
}

TEST_F(CompressedArrays, AllTypesAndOrdersByDefaultTiles) {
  {
    Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
    std::vector<int16_t> shorts(3'000'000);
    std::iota(shorts.begin(), shorts.end(), int16_t{0});
    ASSERT_TRUE(out.store_whole("shorts", array_type<int16_t>(), {1000, 3000}, shorts.data(),
                                compressed("zstd", {}))
                    .ok());
    ArrayOptions column = compressed("lz4", {});
    column.order = Order::kColumn;
    ASSERT_TRUE(
        out.store_whole("column", array_type<int16_t>(), {1000, 3000}, shorts.data(), column).ok());
    const std::string text(5000, 'x');
    ASSERT_TRUE(
        out.store_whole("text", {"text", 1}, {text.size()}, text.data(), compressed("zstd", {}))
            .ok());
    const int one = 7;
    ASSERT_TRUE(out.store_whole("one", array_type<int>(), {}, &one, compressed("zstd", {})).ok());
    ASSERT_TRUE(out.alloc<double>("none", {0, 5}, compressed("zstd", {})).ok());
    ASSERT_TRUE(out.close().ok());
  }
  const Arrays in = Arrays::open(path_).value();
  EXPECT_EQ(in.info("shorts")->compress, "zstd:3");
  EXPECT_FALSE(in.info("shorts")->tiles.empty());
  std::vector<int16_t> part(6), column(6);
  ASSERT_TRUE(in.load("shorts", part.data(), {999, 2000}, {1, 6}).ok());
  EXPECT_EQ(part[5], static_cast<int16_t>(999 * 3000 + 2005));
  ASSERT_TRUE(in.load("column", column.data(), {5, 7}, {1, 6}).ok());
  EXPECT_EQ(column[1], static_cast<int16_t>(8 * 1000 + 5));
  EXPECT_EQ(in.load<std::string>("text").value(), std::string(5000, 'x'));
  EXPECT_EQ(in.load<int>("one").value(), 7);
  EXPECT_EQ(in.load_dims("none").value(), (Dims{0, 5}));
}

TEST_F(CompressedArrays, TheyTakeLessOfTheDisk) {
  constexpr uint64_t kCount = 4 << 20;
  std::vector<double> smooth(kCount);
  for (uint64_t i = 0; i < kCount; ++i) smooth[i] = static_cast<double>(i);
  Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
  ASSERT_TRUE(
      out.store_whole("u", array_type<double>(), {kCount}, smooth.data(), compressed("zstd", {}))
          .ok());
  ASSERT_TRUE(out.close().ok());
  EXPECT_LT(used_bytes(), kCount * 8 / 4);
  EXPECT_EQ(Arrays::open(path_)->load<std::vector<double>>("u").value(), smooth);
}

TEST_F(CompressedArrays, ATileThatBecomesSmallerGivesSpaceBack) {
  constexpr uint64_t kCount = 1 << 20;
  std::mt19937_64 random(1);
  std::vector<uint64_t> noise(kCount);
  for (uint64_t& x : noise) x = random();
  Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
  ASSERT_TRUE(out.alloc<uint64_t>("u", {kCount}, compressed("zstd", {1 << 17})).ok());
  ASSERT_TRUE(out.store("u", noise.data(), {0}, {kCount}).ok());
  std::vector<uint64_t> back(kCount);
  ASSERT_TRUE(out.load("u", back.data(), {0}, {kCount}).ok());
  EXPECT_EQ(back, noise);
  std::fill(noise.begin(), noise.end(), uint64_t{5});
  ASSERT_TRUE(out.store("u", noise.data(), {0}, {kCount}).ok());
  ASSERT_TRUE(out.close().ok());
  EXPECT_LT(used_bytes(), uint64_t{1} << 20);
  EXPECT_EQ(Arrays::open(path_)->load<std::vector<uint64_t>>("u").value(), noise);
}

TEST_F(CompressedArrays, ThreadsAndProcessesShareTiles) {
  constexpr unsigned kProcesses = 4;
  const auto results = scene::in_processes(kProcesses, [&](unsigned rank) {
    auto out = Arrays::open(path_, ArraysMode::kWrite, Communicator::processes(kProcesses));
    bool is_good = out.ok() && out->alloc<double>("u", kCube, compressed()).ok();
    // Columns one element wide, so that all of them have part of every tile.
    std::vector<std::thread> threads;
    std::atomic<bool> all_good{is_good};
    for (uint64_t t = 0; is_good && t < 2; ++t)
      threads.emplace_back([&, t] {
        for (uint64_t z = 2 * rank + t; z < kSide; z += 2 * kProcesses)
          if (!store(*out, {0, 0, z}, {kSide, kSide, 1}).ok()) all_good = false;
      });
    for (std::thread& thread : threads) thread.join();
    is_good = all_good && out->close().ok();
    return is_good ? 0 : 1;
  });
  EXPECT_EQ(results, std::vector<int>(kProcesses, 0));
  expect_cube(Arrays::open(path_).value());
}

TEST_F(CompressedArrays, WhatIsWrongIsRefused) {
  Arrays out = make(compressed(), path_);
  const auto message = [&](const ArrayOptions& options, const Dims& dims = kCube) {
    const Status s = out.alloc<double>("v", dims, options);
    EXPECT_FALSE(s.ok());
    return s.message();
  };
  EXPECT_THAT(message(compressed("gzip")), AllOf(HasSubstr("gzip"), HasSubstr("zstd:LEVEL")));
  EXPECT_THAT(message(compressed("zstd:99")), HasSubstr("zstd:99"));
  EXPECT_THAT(message(compressed("zstd", {1 << 30}), {uint64_t{1} << 40}), HasSubstr("256 MiB"));
  EXPECT_FALSE(out.has("v"));
  ASSERT_TRUE(store(out, {0, 0, 0}, kCube).ok());
  EXPECT_EQ(out.view<double>("u").code(), ENOTSUP);
  ASSERT_TRUE(out.flush().ok());
  const Status in_place = store(out, {0, 0, 0}, {1, 1, 1});
  EXPECT_EQ(in_place.code(), ENOTSUP);
  EXPECT_THAT(in_place.message(), HasSubstr("store it as a whole"));
  ASSERT_TRUE(out.store_whole("u", array_type<double>(), kCube, box_of({0, 0, 0}, kCube).data(),
                              compressed("lz4"))
                  .ok());
  ASSERT_TRUE(out.close().ok());
  expect_cube(Arrays::open(path_).value());
}

TEST_F(CompressedArrays, DamageIsToldAndNeverServed) {
  {
    Arrays out = make(compressed(), path_);
    ASSERT_TRUE(store(out, {0, 0, 0}, kCube).ok());
    ASSERT_TRUE(out.close().ok());
  }
  std::ifstream file(path_, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  uint64_t told = 0;
  for (uint64_t at = 256 << 10; at < whole.size(); at += 1777) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x20);
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    const Arrays in = Arrays::open(path_).value();
    std::vector<double> all(kSide * kSide * kSide);
    const Status s = in.load("u", all.data(), {0, 0, 0}, kCube);
    if (s.ok()) {  // a byte that nothing uses
      EXPECT_EQ(all, box_of({0, 0, 0}, kCube)) << at;
      continue;
    }
    ++told;
    EXPECT_EQ(s.code(), EIO);
    EXPECT_THAT(s.message(), AllOf(HasSubstr("tile"), HasSubstr("'u'")));
  }
  EXPECT_GT(told, 10u);
}

}  // namespace
}  // namespace outcore
