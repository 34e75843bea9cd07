// The credit of streams: what a page that is read earns follows what it saves, and what pages cost
// that are brought in for nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <unordered_set>

#include "core/prefetch/eviction_worth.h"
#include "core/prefetch/fetch_cost.h"
#include "core/prefetch/fetch_tuner.h"
#include "core/prefetch/stream_table.h"

namespace outcore::prefetch {
namespace {

// A thread that reads pages, each in memory for long enough to be read once.
class RunReader {
 public:
  explicit RunReader(double gain, uint32_t readers = 1) : gain_(gain), readers_(readers) {}

  void read(uint64_t page) {
    if (!resident_.insert(page).second) return;
    ++misses_;
    const StreamTable::Advice ahead = table_.on_miss({.cache_id = 1,
                                                      .page = page,
                                                      .page_end = 1 << 30,
                                                      .window_max = 256,
                                                      .readers = readers_,
                                                      .gain = gain_,
                                                      .absent = {this, is_absent}});
    for (uint32_t r = 0; r < ahead.run_count; ++r)
      for (uint32_t i = 0; i < ahead.run[r].count; ++i)
        advised_ += resident_.insert(ahead.run[r].first_page + i).second ? 1 : 0;
  }
  // So many pages one after the other; then it goes elsewhere.
  void read_run(uint64_t pages) {
    for (uint64_t i = 0; i < pages; ++i) read(next_ + i);
    next_ += pages + 2 * StreamTable::kStrideMax;  // runs are no stream of their own
  }

  uint64_t misses() const { return misses_; }
  uint64_t advised() const { return advised_; }

 private:
  static bool is_absent(const void* of, uint64_t page) {
    return !static_cast<const RunReader*>(of)->resident_.contains(page);
  }

  StreamTable table_{};
  const double gain_;
  const uint32_t readers_;
  std::unordered_set<uint64_t> resident_;
  uint64_t next_ = 0, misses_ = 0, advised_ = 0;
};

// Runs of nine pages: three are missed before four are brought in, which are read; then seven, of
// which one is.
TEST(Credit, LastsForShortRunsOnlyWhereAPageThatIsReadSavesMuch) {
  RunReader much(StreamCredit::kGainMost), little(0.25);
  for (int i = 0; i < 2'000; ++i) much.read_run(9), little.read_run(9);
  EXPECT_GT(much.advised(), 2'000u * 7);
  EXPECT_LT(little.advised(), much.advised() / 2);
  EXPECT_LE(much.misses() + much.advised(), 2'000u * 16);
}

TEST(Credit, LastsForFewReadersOnly) {
  RunReader few(StreamCredit::kGainMost, StreamCredit::kFewReaders);
  RunReader many(StreamCredit::kGainMost, StreamCredit::kFewReaders + 1);
  for (int i = 0; i < 2'000; ++i) few.read_run(9), many.read_run(9);
  EXPECT_LT(many.advised(), few.advised() * 3 / 4);
}

// Whatever it saves, a page that is read pays for itself and for some more.
TEST(Credit, IsEnoughForAScanHoweverLittleAPageSaves) {
  RunReader reader(0);
  for (int i = 0; i < 1'000; ++i) reader.read_run(3);  // in vain, until there is no credit
  const uint64_t before = reader.misses();
  reader.read_run(100'000);
  EXPECT_LE(reader.misses() - before, 100'000u / 100);
}

// However long they are: no run's length keeps in step with the credit that misses give.
TEST(Credit, ComesBackForRunsWhateverTheirLength) {
  for (const uint64_t length : {16, 24, 32, 48, 64}) {
    RunReader reader(0.5);
    for (int i = 0; i < 1'000; ++i) reader.read_run(3);
    const uint64_t before = reader.misses();
    for (int i = 0; i < 1'000; ++i) reader.read_run(length);
    EXPECT_LE(reader.misses() - before, 1'000 * length * 19 / 20) << length;
  }
}

TEST(Credit, OfMissesAloneIsLessWherePagesInVainCostMore) {
  // Of each run of three nothing is read that is brought in.
  RunReader cheap(StreamCredit::kGainMost), dear(0.5);
  for (int i = 0; i < 20'000; ++i) cheap.read_run(3), dear.read_run(3);
  EXPECT_LE(cheap.advised(), cheap.misses() / 7);
  EXPECT_GE(cheap.advised(), cheap.misses() / 9);
  EXPECT_LE(dear.advised(), dear.misses() / 50);
}

// Who has no credit may be better off by clusters.
TEST(Credit, WhoHasNoneIsToldOfNoStream) {
  StreamTable table{};
  const auto miss = [&](uint64_t page) {
    return table.on_miss({.cache_id = 1, .page = page, .page_end = 1 << 30, .window_max = 256});
  };
  uint64_t page = 0;
  for (int run = 0; run < 1'000; ++run, page += 2 * StreamTable::kStrideMax)
    for (uint64_t i = 0; i < 3; ++i) miss(page + i);
  for (uint64_t i = 0; i < 3; ++i) miss(page + i);
  const StreamTable::Advice ahead = miss(page + 3);
  EXPECT_EQ(ahead.run_count, 0u);
  EXPECT_EQ(ahead.stride, 0);
}

TEST(EvictionWorth, KnowsHowManyAreWrittenThatLeave) {
  EvictionWorth worth;
  EXPECT_EQ(worth.written_share(), 0);
  for (int i = 0; i < 200; ++i) worth.note_leaving(64, 16);
  EXPECT_NEAR(worth.written_share(), 0.25, 0.02);
  worth.note_leaving(0, 0);
  EXPECT_NEAR(worth.written_share(), 0.25, 0.02) << "nothing left";
  for (int i = 0; i < 200; ++i) worth.note_leaving(64, 64);
  EXPECT_NEAR(worth.written_share(), 1, 0.02);
  for (int i = 0; i < 2'000; ++i) worth.note_leaving(1, 0);
  EXPECT_LT(worth.written_share(), 0.2);
}

// Until it is known what leaves, a page in vain costs its transfer and a fifth of a miss.
TEST(GainAhead, IsLessWhereWhatLeavesIsWritten) {
  FetchTuner tuner;
  FetchCost cost;
  ASSERT_TRUE(tuner.allocate());
  EXPECT_GT(tuner.gain_ahead(cost, false), StreamCredit::kGainMost) << "while there is room";
  const double clean = tuner.gain_ahead(cost, true);
  EXPECT_LE(clean, StreamCredit::kGainMost);
  for (int i = 0; i < 200; ++i) tuner.note_leaving(64, 64);
  const double written = tuner.gain_ahead(cost, true);
  EXPECT_LT(written, clean * 3 / 4);
  EXPECT_GT(written, 0);
  EXPECT_GT(tuner.gain_ahead(cost, false), StreamCredit::kGainMost) << "nothing leaves";
}

}  // namespace
}  // namespace outcore::prefetch
