// StreamLengths: readers of pieces, by a stream table over a set of resident pages.
#include "core/prefetch/stream_lengths.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_set>
#include <vector>

#include "core/prefetch/stream_table.h"

namespace outcore::prefetch {
namespace {

constexpr uint64_t kMissNs = 100'000, kPageNs = FetchCost::kFirstPageNs;  // a disk

// A thread that reads, and a prefetcher that fills advised pages at once.
struct PieceReader {
  StreamTable table{};
  StreamLengths lengths;
  FetchCost cost;
  std::unordered_set<uint64_t> resident, asked;
  bool has_walls = true;
  uint32_t window_max = 512;
  uint64_t misses = 0, advised = 0;

  PieceReader() { cost.set_trap_ns(kMissNs - FetchCost::kFirstMissNs); }
  void read(uint64_t page) {
    asked.insert(page);
    if (!resident.insert(page).second) return;
    ++misses;
    StreamTable::Miss miss;
    miss.cache_id = 1, miss.page = page, miss.page_end = 1 << 22, miss.window_max = window_max;
    miss.absent = {this, [](const void* of, uint64_t next) {
                     return !static_cast<const PieceReader*>(of)->resident.contains(next);
                   }};
    if (has_walls) miss.lengths = &lengths;
    miss.cost = &cost;
    const StreamTable::Advice ahead = table.on_miss(miss);
    EXPECT_TRUE(table.is_valid());
    for (uint32_t i = 0; i < ahead.run_count; ++i) {
      for (uint32_t k = 0; k < ahead.run[i].count; ++k)
        advised += resident.insert(ahead.run[i].first_page + k).second ? 1 : 0;
    }
  }
  void read_piece(uint64_t first, uint64_t pages) {
    for (uint64_t page = first; page < first + pages; ++page) read(page);
  }
  // Of its misses, and of the pages that came along.
  uint64_t cost_ns() const { return misses * kMissNs + advised * kPageNs; }
  uint64_t unused() const { return resident.size() - asked.size(); }
};

// Reads `count` pieces that lie anywhere, and forgets what was read.
void read_pieces(PieceReader& reader, uint64_t pages, int count, std::mt19937_64& dice) {
  reader.resident.clear(), reader.asked.clear();
  reader.misses = reader.advised = 0;
  for (int i = 0; i < count; ++i) reader.read_piece(dice() % 4000 * 1024, pages);
}

TEST(StreamLengths, StepsGrowWithThePagesTwoAnOctave) {
  uint32_t before = 0;
  for (uint32_t pages = 1; pages < 1 << 18; ++pages) {
    const uint32_t step = StreamLengths::step_of(pages);
    EXPECT_GE(step, before);
    EXPECT_LE(step, before + 2) << "one page has no half";
    before = step;
  }
  EXPECT_EQ(StreamLengths::step_of(UINT32_MAX), StreamLengths::kSteps - 1);
  EXPECT_NE(StreamLengths::step_of(95), StreamLengths::step_of(96));
  EXPECT_EQ(StreamLengths::step_of(96), StreamLengths::step_of(127));
}

TEST(StreamLengths, ReadaheadEndsWherePiecesEnd) {
  for (const uint64_t pages : {33, 64, 128, 300, 512}) {
    std::mt19937_64 dice(pages);
    PieceReader without, with;
    without.has_walls = false;
    read_pieces(without, pages, 40, dice), read_pieces(with, pages, 40, dice);
    read_pieces(without, pages, 40, dice), read_pieces(with, pages, 40, dice);
    EXPECT_GT(without.unused(), without.asked.size() / 5) << pages;
    EXPECT_LT(with.unused(), without.unused() / 2) << pages;
    EXPECT_LT(with.cost_ns(), without.cost_ns()) << pages;
  }
}

// Places in the table are taken again long before a stream that has ended is known to be over.
TEST(StreamLengths, ManyPiecesAtOnceAreLearntAsWell) {
  std::mt19937_64 dice(6);
  PieceReader reader;
  std::vector<uint64_t> first(6);
  for (int round = 0; round < 80; ++round) {
    reader.resident.clear(), reader.asked.clear();
    for (uint64_t& at : first) at = dice() % 4000 * 1024;
    for (uint64_t page = 0; page < 400; ++page) {
      reader.read(first[0] + page);  // one of six is longer
      for (size_t i = 1; i < first.size() && page < 128; ++i) reader.read(first[i] + page);
    }
  }
  EXPECT_LT(reader.unused(), first.size() * 32);
}

TEST(StreamLengths, ALongScanAmongPiecesIsHardlySlower) {
  std::mt19937_64 dice(1);
  PieceReader reader;
  read_pieces(reader, 128, 100, dice);
  reader.resident.clear(), reader.asked.clear(), reader.misses = 0;
  reader.read_piece(0, 20'000);
  PieceReader fresh;
  fresh.read_piece(0, 20'000);
  EXPECT_LE(reader.misses, fresh.misses + 12);
}

TEST(StreamLengths, WallsFallWhenPiecesBecomeLonger) {
  std::mt19937_64 dice(2);
  PieceReader reader, fresh;
  read_pieces(reader, 64, 100, dice);
  read_pieces(reader, 512, 60, dice);
  const uint64_t learning = reader.misses;
  read_pieces(reader, 512, 60, dice), read_pieces(fresh, 512, 60, dice);
  EXPECT_LE(reader.misses, fresh.misses * 11 / 10);
  EXPECT_GE(learning, reader.misses);
}

// The window cannot double, so half of it is still ahead when the wall is met.
TEST(StreamLengths, AWallEndsWhereThePagesAheadOfItAreLost) {
  std::mt19937_64 dice(4);
  PieceReader reader;
  reader.window_max = 32;
  read_pieces(reader, 128, 100, dice);
  read_pieces(reader, 128, 1, dice);
  EXPECT_LE(reader.unused(), 1u) << "there is a wall";
  const uint64_t first = uint64_t{4000} * 1024;
  reader.read_piece(first, 113);
  for (uint64_t page = first + 113; page < first + 128; ++page) reader.resident.erase(page);
  const uint64_t before = reader.misses;
  reader.read_piece(first + 113, 15);
  EXPECT_GE(reader.misses, before + 9) << "as many as are taken for waste";
}

TEST(StreamLengths, ReadersThatPassPagesInMemoryHaveNotEnded) {
  PieceReader reader, fresh;
  for (uint64_t i = 0; i < 60; ++i) {
    const uint64_t first = i * 4096;
    for (uint64_t page = first + 8; page < first + 1500; ++page) reader.resident.insert(page);
    reader.read_piece(first, 1500);
  }
  std::mt19937_64 dice(5), same_dice(5);
  read_pieces(reader, 100, 1, dice), read_pieces(fresh, 100, 1, same_dice);
  EXPECT_LE(reader.misses, fresh.misses) << "there is no wall at 8";
}

TEST(StreamLengths, AnEndlessScanMeetsNoWall) {
  PieceReader without, with;
  without.has_walls = false;
  without.read_piece(0, 200'000), with.read_piece(0, 200'000);
  EXPECT_EQ(with.misses, without.misses);
}

}  // namespace
}  // namespace outcore::prefetch
