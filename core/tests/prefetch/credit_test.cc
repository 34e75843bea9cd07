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
  explicit RunReader(double gain) : gain_(gain) {}

  void read(uint64_t page) {
    if (!resident_.insert(page).second) return;
    ++misses_;
    const StreamTable::Advice ahead = table_.on_miss({.cache_id = 1,
                                                      .page = page,
                                                      .page_end = 1 << 30,
                                                      .window_max = 256,
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
  std::unordered_set<uint64_t> resident_;
  uint64_t next_ = 0, misses_ = 0, advised_ = 0;
};

// Runs of nine pages: three are missed before four are brought in, which are read; then seven, of
// which one is.
TEST(Credit, LastsForShortRunsOnlyWhereAPageThatIsReadSavesMuch) {
  RunReader much(StreamTable::kGainMost), little(0.25);
  for (int i = 0; i < 2'000; ++i) much.read_run(9), little.read_run(9);
  EXPECT_GT(much.advised(), 2'000u * 7);
  EXPECT_LT(little.advised(), much.advised() / 2);
  EXPECT_LE(much.misses() + much.advised(), 2'000u * 16);
}

// Whatever it saves, a page that is read pays for itself and for some more.
TEST(Credit, IsEnoughForAScanHoweverLittleAPageSaves) {
  RunReader scan(0);
  for (uint64_t page = 0; page < 100'000; ++page) scan.read(page);
  EXPECT_LE(scan.misses(), 100'000u / 100);
}

TEST(Credit, OfMissesAloneIsLessWherePagesInVainCostMore) {
  // Of each run of three nothing is read that is brought in.
  RunReader cheap(StreamTable::kGainMost), dear(0.5);
  for (int i = 0; i < 20'000; ++i) cheap.read_run(3), dear.read_run(3);
  EXPECT_LE(cheap.advised(), cheap.misses() / 7);
  EXPECT_LE(dear.advised(), dear.misses() / 50);
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
  FetchCounts counts;
  FetchHistory history(counts, 1);
  ASSERT_TRUE(tuner.allocate());
  EXPECT_GT(tuner.gain_ahead(cost), StreamTable::kGainMost) << "while there is room";
  FetchTuner::Miss miss;
  miss.cache_id = 1, miss.page = 7, miss.pages_end = 100, miss.room_pages = 1'000;
  miss.is_full = true;
  tuner.choose(history, miss);
  const double clean = tuner.gain_ahead(cost);
  EXPECT_LE(clean, StreamTable::kGainMost);
  for (int i = 0; i < 200; ++i) tuner.note_leaving(64, 64);
  const double written = tuner.gain_ahead(cost);
  EXPECT_LT(written, clean * 3 / 4);
  EXPECT_GT(written, 0);
}

}  // namespace
}  // namespace outcore::prefetch
