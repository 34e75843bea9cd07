// Checksums of arrays that are not compressed: however the bytes came, they agree with what is
// there, and each bit that rots is found, where it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "arrays/container/block_sums.h"
#include "arrays/tests/container/processes.h"
#include "outcore/arrays.h"
#include "outcore/arrays_drain.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using scene::in_processes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// -- the sums themselves --

TEST(BlockSums, PartsInAnyOrderAddUpToTheWhole) {
  std::mt19937_64 random(7);
  constexpr uint64_t kBytes = 70'001, kAt = 4'000'003;
  std::vector<std::byte> bytes(kBytes);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  const uint64_t whole = arrays::sum_of(kAt, bytes);
  for (int round = 0; round < 200; ++round) {
    uint64_t sum = 0;
    std::vector<std::pair<uint64_t, uint64_t>> parts;
    for (uint64_t at = 0; at < kBytes;) {
      const uint64_t size = std::min<uint64_t>(kBytes - at, 1 + random() % (round % 2 ? 7 : 9000));
      parts.emplace_back(at, size);
      at += size;
    }
    std::shuffle(parts.begin(), parts.end(), random);
    for (const auto& [at, size] : parts)
      sum += arrays::sum_of(kAt + at, std::span(bytes).subspan(at, size));
    ASSERT_EQ(sum, whole) << round;
  }
}

TEST(BlockSums, OneBitAndTwoLikeOnesAreSeen) {
  std::mt19937_64 random(8);
  std::vector<std::byte> bytes(64 << 10);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  const uint64_t whole = arrays::sum_of(0, bytes);
  for (int i = 0; i < 2000; ++i) {
    const size_t one = random() % bytes.size(), other = random() % bytes.size();
    const auto bit = static_cast<std::byte>(1 << random() % 8);
    bytes[one] ^= bit;
    ASSERT_NE(arrays::sum_of(0, bytes), whole);
    bytes[other] ^= bit;
    ASSERT_EQ(arrays::sum_of(0, bytes) == whole, other == one);
    bytes[one] ^= bit;
    bytes[other] ^= bit;
    ASSERT_EQ(arrays::sum_of(0, bytes), whole);
  }
}

TEST(BlockSums, CoverTellsGapsAndOverlaps) {
  arrays::Entry entry;
  entry.type = {"|u1", 1};
  entry.dims = {3 << 20};
  entry.block_bytes = 1 << 20;
  const arrays::BlockSums full = arrays::full_cover(entry);
  const auto cover_of = [&](const std::vector<std::pair<uint64_t, uint64_t>>& runs) {
    arrays::BlockSums sums(entry);
    for (const auto& [from, to] : runs) sums.add(from, nullptr, to - from);
    std::vector<bool> is_full;
    for (size_t b = 0; b < 3; ++b)
      is_full.push_back(sums.blocks()[b].cover == full.blocks()[b].cover);
    return is_full;
  };
  constexpr uint64_t kEnd = 3 << 20, kBlock = 1 << 20;
  EXPECT_THAT(cover_of({{0, kEnd}}), ElementsAre(true, true, true));
  EXPECT_THAT(cover_of({{77, kEnd}, {0, 77}}), ElementsAre(true, true, true));
  EXPECT_THAT(cover_of({{0, 10}, {10, kEnd}, {20, 30}}), ElementsAre(false, true, true));
  EXPECT_THAT(cover_of({{0, kBlock + 5}, {kBlock + 6, kEnd}}), ElementsAre(true, false, true));
  // As many bytes as there are, some twice and some never; also so that their places add up.
  EXPECT_THAT(cover_of({{0, 40}, {40, 50}, {40, 50}, {60, kEnd}}), ElementsAre(false, true, true));
  EXPECT_THAT(cover_of({{0, 1}, {2, 4}, {2, 4}, {7, 8}, {7, 8}, {4, 5}, {8, kEnd}}),
              ElementsAre(false, true, true));
}

// -- containers --

class Sums : public testing::Test {
 protected:
  std::vector<double> numbers(uint64_t count, double first = 0) const {
    std::vector<double> all(count);
    std::iota(all.begin(), all.end(), first);
    return all;
  }
  // What verify() finds in all arrays; each has checksums.
  std::vector<std::string> damages(const std::string& name = "") const {
    const auto in = Arrays::open(path_);
    EXPECT_TRUE(in.ok()) << in.message();
    std::vector<std::string> found;
    const auto checked =
        in->verify(name, [&](const ArrayDamage& d) { found.push_back(d.array + ": " + d.where); });
    EXPECT_TRUE(checked.ok()) << checked.message();
    EXPECT_THAT(checked->unchecked, IsEmpty());
    EXPECT_EQ(checked->damages, found.size());
    return found;
  }
  std::string whole_file() const {
    std::string all(std::filesystem::file_size(path_), '\0');
    std::ifstream(path_).read(all.data(), static_cast<std::streamsize>(all.size()));
    return all;
  }
  // Where these bytes lie in the file; by memmem, which does not begin anew at each of many zeros.
  uint64_t find(const std::vector<double>& bytes) const {
    const std::string all = whole_file();
    const void* at = ::memmem(all.data(), all.size(), bytes.data(), bytes.size() * sizeof(double));
    return at == nullptr ? std::string::npos : static_cast<const char*>(at) - all.data();
  }
  void flip(uint64_t at) const {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get() ^ 0x10);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }
  const scene::Folder folder_;
  const std::string path_ = folder_.path() + "/a.oca";
};

TEST_F(Sums, ARottenByteIsFoundWhereItIsAndNowhereElse) {
  {
    Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
    ASSERT_TRUE(out.store("u", numbers(400'000)).ok());  // 3.05 MiB
    ASSERT_TRUE(out.store("v", numbers(1000, 1e9)).ok());
    ASSERT_TRUE(out.store("little", 7.0).ok());
    ASSERT_TRUE(out.close().ok());
  }
  EXPECT_THAT(damages(), IsEmpty());
  const uint64_t at = find(numbers(400'000));
  ASSERT_NE(at, std::string::npos);
  flip(at + (1 << 20) + 5);
  EXPECT_THAT(damages(), ElementsAre(HasSubstr("u: bytes 1048576 to 2097151, at ")));
  EXPECT_THAT(damages("v"), IsEmpty());
  flip(at + 3'199'999);
  EXPECT_THAT(damages(),
              ElementsAre(HasSubstr("1048576 to"), HasSubstr("bytes 3145728 to 3199999")));
  flip(at + (1 << 20) + 5);
  flip(at + 3'199'999);
  flip(at + 3'200'000 + 3);  // the first of its checksums
  EXPECT_THAT(damages(), ElementsAre(HasSubstr("the checksum of bytes 0 to 1048575")));
}

TEST_F(Sums, HoweverBoxesComeTheyAreTheSumsOfWhatIsThere) {
  std::mt19937 random(5);
  for (const bool has_tiles : {false, true}) {
    for (int round = 0; round < 8; ++round) {
      Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
      const Dims shape = {150, 70, 31};
      ArrayOptions options;
      if (has_tiles) options.tiles = {64, 16, 31};
      if (round % 2 == 1) options.order = Order::kColumn;
      ASSERT_TRUE(out.alloc<float>("u", shape, options).ok());
      // Overlaps, gaps, and here and there all of it.
      for (int box = 0; box < round * 3; ++box) {
        Dims at(3), dims(3);
        for (size_t d = 0; d < 3; ++d) {
          at[d] = random() % shape[d];
          dims[d] = 1 + random() % (shape[d] - at[d]);
        }
        if (box % 5 == 4) at = {0, 0, 0}, dims = shape;
        std::vector<float> values(dims[0] * dims[1] * dims[2]);
        for (float& v : values) v = static_cast<float>(random());
        ASSERT_TRUE(out.store("u", values.data(), at, dims).ok());
        if (box == 7) {
          ASSERT_TRUE(out.flush().ok());  // from here on in place
        }
      }
      ASSERT_TRUE(out.close().ok());
      EXPECT_THAT(damages(), IsEmpty()) << has_tiles << " " << round;
    }
  }
}

TEST_F(Sums, ArraysStoredAgainAndChangedInPlaceHaveNewOnes) {
  {
    Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
    ASSERT_TRUE(out.store("u", numbers(400'000)).ok());
    ASSERT_TRUE(out.store("u", numbers(400'000, 5)).ok());
    ASSERT_TRUE(out.close().ok());
  }
  EXPECT_THAT(damages(), IsEmpty());
  {
    Arrays out = Arrays::open(path_, ArraysMode::kUpdate).value();
    const auto some = numbers(300, 9), many = numbers(200'000, 3);
    ASSERT_TRUE(out.store("u", some.data(), {131'000}, {300}).ok());
    ASSERT_TRUE(out.store("u", many.data(), {140'000}, {200'000}).ok());
    ASSERT_TRUE(out.flush().ok());
    ASSERT_TRUE(out.store("u", some.data(), {5}, {300}).ok());
    ASSERT_TRUE(out.close().ok());
  }
  EXPECT_THAT(damages(), IsEmpty());
  flip(find(numbers(300, 9)) + 8);
  EXPECT_THAT(damages(), ElementsAre(HasSubstr("u: bytes 0 to 1048575")));
}

TEST_F(Sums, AnArrayThatIsChangedInPlaceAndThenReplacedIsGone) {
  {
    Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
    ASSERT_TRUE(out.store("u", numbers(400'000)).ok());
    ASSERT_TRUE(out.close().ok());
  }
  {
    Arrays out = Arrays::open(path_, ArraysMode::kUpdate).value();
    const auto some = numbers(300, 9);
    ASSERT_TRUE(out.store("u", some.data(), {131'000}, {300}).ok());
    ASSERT_TRUE(out.store("u", numbers(1000, 7)).ok());
    ASSERT_TRUE(out.close().ok());
  }
  EXPECT_THAT(damages(), IsEmpty());
  const auto in = Arrays::open(path_);
  EXPECT_EQ(in->list().size(), 1u);
  EXPECT_EQ(in->load<std::vector<double>>("u").value(), numbers(1000, 7));
  EXPECT_EQ(in->verify("u", nullptr)->arrays, 1u);
}

// Its boxes say nothing of what a process did that died; the sums of before would be wrong.
TEST_F(Sums, ADeathWhileAnArrayIsChangedInPlaceLeavesItWithoutAndAccusesNobody) {
  {
    Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
    ASSERT_TRUE(out.store("u", numbers(400'000)).ok());
    ASSERT_TRUE(out.store("v", numbers(400'000)).ok());
    ASSERT_TRUE(out.close().ok());
  }
  const auto dies = [&](unsigned) {
    Arrays out = Arrays::open(path_, ArraysMode::kUpdate).value();
    const auto some = numbers(300, 9);
    if (!out.store("u", some.data(), {131'000}, {300}).ok()) return 1;
    ::_exit(0);
  };
  EXPECT_THAT(in_processes(1, dies), ElementsAre(0));
  const auto unchecked = [&] {
    const auto in = Arrays::open(path_);
    const auto checked = in->verify("", nullptr);
    EXPECT_TRUE(checked.ok()) << checked.message();
    EXPECT_EQ(checked->damages, 0u);
    return checked->unchecked;
  };
  EXPECT_THAT(unchecked(), ElementsAre("u"));
  ASSERT_TRUE(Arrays::open(path_, ArraysMode::kUpdate)->close().ok());
  EXPECT_THAT(unchecked(), ElementsAre("u"));
  Arrays out = Arrays::open(path_, ArraysMode::kUpdate).value();
  ASSERT_TRUE(out.store("u", numbers(400'000, 1)).ok());
  ASSERT_TRUE(out.close().ok());
  EXPECT_THAT(unchecked(), IsEmpty());
}

TEST_F(Sums, SeveralProcessesMakeTheSumsTogether) {
  constexpr unsigned kProcesses = 4;
  const Dims shape = {64, 300, 50};
  const auto write = [&](unsigned rank) {
    auto out = Arrays::open(path_, ArraysMode::kWrite, Communicator::processes(kProcesses));
    if (!out) return 1;
    ArrayOptions tiled;
    tiled.tiles = {32, 100, 50};
    if (!out->alloc<double>("rows", shape).ok() ||
        !out->alloc<double>("tiled", shape, tiled).ok() ||
        !out->alloc<double>("twice", shape).ok() || !out->alloc<double>("once", shape).ok())
      return 2;
    const Dims at = {0, rank * 75, 0}, dims = {64, 75, 50}, more = {64, rank == 3 ? 75u : 80u, 50};
    const auto mine = numbers(64 * 80 * 50, rank);
    if (!out->store("rows", mine.data(), at, dims).ok() ||
        !out->store("tiled", mine.data(), at, dims).ok() ||
        (rank != 2 && !out->store("once", mine.data(), at, dims).ok()))
      return 3;
    const auto same = numbers(64 * 80 * 50);
    return out->store("twice", same.data(), at, more).ok() && out->close().ok() ? 0 : 4;
  };
  EXPECT_THAT(in_processes(kProcesses, write), testing::Each(0));
  EXPECT_THAT(damages(), IsEmpty());
  const auto change = [&](unsigned rank) {
    auto out = Arrays::open(path_, ArraysMode::kUpdate, Communicator::processes(kProcesses));
    if (!out) return 1;
    const auto mine = numbers(64 * 5 * 50, 100 + rank);
    return out->store("rows", mine.data(), {0, rank * 5, 0}, {64, 5, 50}).ok() && out->close().ok()
               ? 0
               : 2;
  };
  EXPECT_THAT(in_processes(kProcesses, change), testing::Each(0));
  EXPECT_THAT(damages(), IsEmpty());
  flip(find(numbers(250, 100)) + 3);
  EXPECT_THAT(damages(), ElementsAre(HasSubstr("rows: bytes 0 to")));
}

TEST_F(Sums, ThreadsStoreBoxesAtOnce) {
  Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
  ASSERT_TRUE(out.alloc<double>("u", {512, 1000}).ok());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const auto row = numbers(250, static_cast<double>(t));
      for (uint64_t i = 0; i < 512; ++i)
        EXPECT_TRUE(out.store("u", row.data(), {i, t * 250}, {1, 250}).ok());
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(out.close().ok());
  EXPECT_THAT(damages(), IsEmpty());
}

TEST_F(Sums, WhoHasSeenEnoughEndsIt) {
  Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
  ASSERT_TRUE(out.store("u", numbers(600'000)).ok());
  ASSERT_TRUE(out.store("v", numbers(600'000)).ok());
  ASSERT_TRUE(out.close().ok());
  std::vector<uint64_t> seen;
  const auto checked = Arrays::open(path_)->verify("", nullptr, [&](uint64_t done) {
    seen.push_back(done);
    return done < 2 << 20;
  });
  EXPECT_EQ(checked.code(), ECANCELED);
  EXPECT_THAT(seen, ElementsAre(1 << 20, 2 << 20));
}

TEST_F(Sums, NoneAreMadeForWhoWantsNoneAndThatIsTold) {
  ArraysOptions options;
  options.has_checksums = false;
  Arrays out = Arrays::open(path_, ArraysMode::kWrite, {}, options).value();
  ASSERT_TRUE(out.store("u", numbers(1000)).ok());
  ASSERT_TRUE(out.close().ok());
  const auto checked = Arrays::open(path_)->verify("", nullptr);
  ASSERT_TRUE(checked.ok());
  EXPECT_THAT(checked->unchecked, ElementsAre("u"));
  EXPECT_EQ(Arrays::open(path_)->verify("w", nullptr).code(), ENOENT);
}

TEST_F(Sums, ADamagedTileOfACompressedArrayIsFoundToo) {
  {
    Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
    ArrayOptions options;
    options.compress = "lz4";
    options.tiles = {1000};
    const auto values = numbers(10'000);
    ASSERT_TRUE(out.store_whole("u", array_type<double>(), {10'000}, values.data(), options).ok());
    ASSERT_TRUE(out.close().ok());
  }
  EXPECT_THAT(damages(), IsEmpty());
  flip((256 << 10) + 3 * 8192 + 40);  // within the fourth slot
  const auto found = damages();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0], HasSubstr("u: the tile at 3000"));
}

TEST_F(Sums, ADrainCopiesNothingThatIsDamaged) {
  {
    Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
    ASSERT_TRUE(out.store("u", numbers(10'000)).ok());
    ASSERT_TRUE(out.close().ok());
  }
  flip(find(numbers(10'000)) + 4);
  auto drain = ArraysDrain::start(path_, folder_.path() + "/b.oca", {});
  ASSERT_TRUE(drain.ok()) << drain.message();
  const Status s = drain->wait();
  EXPECT_EQ(s.code(), EIO);
  EXPECT_THAT(s.message(), HasSubstr("a.oca is damaged: bytes 0 to 79999"));
}

// A header that rotted is none of a foreign file, and the last record none that never was.
TEST_F(Sums, DamageOfTheCatalogIsCalledDamage) {
  {
    Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
    ASSERT_TRUE(out.store("u", numbers(10)).ok());
    ASSERT_TRUE(out.close().ok());
  }
  const auto expect_damaged = [&] {
    const auto in = Arrays::open(path_);
    EXPECT_EQ(in.code(), EIO);
    EXPECT_THAT(in.message(), HasSubstr("a.oca is damaged"));
  };
  flip(4096);
  flip(4097);
  expect_damaged();
  for (uint64_t at = 4098; at < 4104; ++at) flip(at);  // no letter is left
  expect_damaged();
  for (uint64_t at = 4096; at < 4104; ++at) flip(at);
  ASSERT_TRUE(Arrays::open(path_).ok());
  const std::string all = whole_file();
  const size_t seal = all.rfind("OCJD"), last = all.rfind("OCJD", seal - 1);
  flip(last + 20);
  expect_damaged();
}

}  // namespace
}  // namespace outcore
