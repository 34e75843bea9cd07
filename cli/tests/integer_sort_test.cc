// What `outcore bench is` is made of: the generator of the NAS Parallel Benchmarks, its keys, and
// their ranks, which must be the published ones; and that damaged data is found.
#include <algorithm>
#include <numeric>

#include "bench/key_answer.h"
#include "bench/key_ranking.h"
#include "cli/tests/disturbed_bench.h"

namespace outcore::cli {
namespace {

using bench::IntegerKeys;
using bench::KeyAnswer;
using bench::KeyArrays;
using bench::KeyRanking;
using bench::NasRandom;

constexpr unsigned kPasses = 10;

TEST(NasRandom, IsTheSequenceOfItsDefinition) {
  NasRandom random;
  unsigned __int128 x = NasRandom::kSeed;
  for (int i = 0; i < 1000; ++i) {
    x = x * 1220703125 % (uint64_t{1} << 46);
    EXPECT_EQ(random.next(), static_cast<uint64_t>(x));
  }
}

TEST(NasRandom, SkipsAsFarAsItIsToldTo) {
  for (const uint64_t count : {0U, 1U, 2U, 3U, 1000U}) {
    NasRandom one, other;
    for (uint64_t i = 0; i < count; ++i) one.next();
    other.skip(count);
    EXPECT_EQ(one.unit(), other.unit()) << count;
  }
}

// A class of the benchmarks as they are published: the ranks of five keys in pass i are these, of
// some plus i + `more`, of the others minus i + `less`.
struct Published {
  const char* name;
  KeyAnswer::Ranks ranks;
  unsigned rising;  // so many, from the first, are those with plus
  int64_t more, less;
};

TEST(IntegerKeys, HaveThePublishedRanks) {
  const Published all[] = {{"S", {0, 18, 346, 64917, 65463}, 3, 0, 0},
                           {"W", {1249, 11698, 1039987, 1043896, 1048018}, 2, -2, 0},
                           {"A", {104, 17523, 123928, 8288932, 8388264}, 3, -1, -1}};
  for (const Published& one : all) {
    const auto keys = IntegerKeys::of_class(one.name);
    ASSERT_TRUE(keys.has_value());
    const KeyAnswer answer = KeyAnswer::compute(*keys, kPasses, 2);
    for (int64_t pass = 1; pass <= kPasses; ++pass)
      for (unsigned i = 0; i < IntegerKeys::kProbes; ++i) {
        const auto rank = static_cast<int64_t>(one.ranks[i]);
        EXPECT_EQ(static_cast<int64_t>(answer.ranks[static_cast<size_t>(pass - 1)][i]),
                  i < one.rising ? rank + pass + one.more : rank - pass - one.less)
            << one.name << " pass " << pass << " key " << i;
      }
  }
}

TEST(IntegerKeys, FitIntoTheSizeAndNearlyFillIt) {
  for (const uint64_t size : {uint64_t{64} << 10, uint64_t{100} << 10, uint64_t{1} << 20,
                              uint64_t{300} << 20, uint64_t{32} << 30}) {
    const IntegerKeys keys = IntegerKeys::fitting(size);
    EXPECT_LE(keys.size_bytes(), size);
    EXPECT_GE(keys.size_bytes(), size - size / 16 - 4096);
    EXPECT_GE(keys.count, 16 * keys.limit());
    EXPECT_GT(keys.probes.front(), 200U);
    EXPECT_LT(keys.probes.back(), keys.count);
  }
  EXPECT_FALSE(IntegerKeys::of_class("").has_value());
  EXPECT_EQ(IntegerKeys::of_class("B")->size_bytes(), uint64_t{264} << 20);
}

class Ranking : public testing::Test {
 protected:
  Ranking() : all_(2 * keys_.count + keys_.limit()) {
    keys_.make(0, keys_.count, [&](uint64_t index, uint32_t key) { all_[index] = key; });
  }
  KeyArrays arrays() {
    return {all_.data(), all_.data() + keys_.count, all_.data() + 2 * keys_.count};
  }

  IntegerKeys keys_ = IntegerKeys::fitting(uint64_t{1} << 20);
  std::vector<uint32_t> all_;
};

TEST_F(Ranking, CountsTheKeysUpToEachAndSortsThem) {
  std::vector<uint32_t> sorted(all_.begin(), all_.begin() + static_cast<int64_t>(keys_.count));
  std::sort(sorted.begin(), sorted.end());
  for (const unsigned threads : {1U, 3U}) {
    keys_.make(0, keys_.count, [&](uint64_t index, uint32_t key) { all_[index] = key; });
    KeyRanking ranking(keys_, threads);
    std::atomic<uint64_t> seen{0};
    ranking.rank(arrays(), [&](uint64_t keys) { seen += keys; });
    EXPECT_EQ(seen, keys_.count);
    for (uint32_t key = 0; key < keys_.limit(); ++key)
      ASSERT_EQ(arrays().ranks[key],
                std::upper_bound(sorted.begin(), sorted.end(), key) - sorted.begin());
    ranking.sort(arrays());
    EXPECT_TRUE(std::equal(sorted.begin(), sorted.end(), all_.begin()));
    EXPECT_EQ(ranking.misplaced(), 0U);
  }
}

TEST_F(Ranking, GivesTheAnswerThatIsComputedWithoutKeys) {
  KeyRanking ranking(keys_, 2);
  for (const auto& change : keys_.changes(1, 1)) all_[change.index] = change.key;
  ranking.rank(arrays(), [](uint64_t) {});
  ranking.sort(arrays());
  EXPECT_EQ(ranking.order_hash(all_.data()), KeyAnswer::compute(keys_, 1, 2).order_hash);
  std::swap(all_.front(), all_[keys_.count - 1]);
  EXPECT_NE(ranking.order_hash(all_.data()), KeyAnswer::compute(keys_, 1, 2).order_hash);
}

TEST_F(Ranking, OfKeysThatAreNoneStaysWithinItsArrays) {
  KeyRanking ranking(keys_, 2);
  all_.push_back(7);  // behind the ranks
  std::fill_n(all_.begin() + 1000, 100, 0xFFFFFFFF);
  ranking.rank(arrays(), [](uint64_t) {});
  EXPECT_EQ(ranking.misplaced(), 100U);
  std::fill_n(all_.end() - 1 - static_cast<int64_t>(keys_.limit() / 2), 10, 0U);  // ranks
  ranking.sort(arrays());
  EXPECT_GT(ranking.misplaced(), 200U);
  EXPECT_EQ(all_.back(), 7U);
}

class IntegerSortRun : public DisturbedBench {};

TEST_F(IntegerSortRun, HasTheSameAnswerInEveryMemoryAndWithAnyThreads) {
  const std::vector<Json> lines = lines_of_all_memories("is --class S");
  ASSERT_EQ(lines.size(), 6U);
  for (const auto& line : lines) {
    EXPECT_EQ(line["checked"], true);
    EXPECT_EQ(line["unit"], "keys/s");
    EXPECT_EQ(line["variant"], "class S");
    EXPECT_EQ(line["keys"], 65536);
    EXPECT_EQ(line["data_bytes"], 2 * 262144 + 8192);
    for (const char* key : {"ranks_hash", "order_hash"}) EXPECT_EQ(line[key], lines[0][key]);
  }
}

// Of keys, which are written once: buckets and ranks are made anew in each pass, and what is wrong
// with them is right again unless it is wrong at the right moment (see Ranking above).
TEST_F(IntegerSortRun, OfDamagedKeysIsFound) {
  const Outcome outcome = disturbed("is --class W --passes 60 --threads 2 --overwrite", 65536);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("ranks are not those of the keys"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace outcore::cli
