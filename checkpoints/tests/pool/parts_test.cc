// The parts of a pool, each alone: map, heap, journal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoints/pool/block_heap.h"
#include "checkpoints/pool/chunk_map.h"
#include "checkpoints/pool/journal.h"
#include "checkpoints/tests/pool/sim_disk.h"

namespace outcore::versioned_test {
namespace {

using testing::HasSubstr;
using versioned::BlockHeap;
using versioned::ChunkMap;
using versioned::Entry;
using versioned::Grave;
using versioned::Journal;
using versioned::JournalReader;
using versioned::MappedArray;
using versioned::Record;
using versioned::RecordType;

TEST(ChunkMap, WhatWasNeverSetIsAHoleAndChangesAreToldOnceInOrder) {
  const auto map = ChunkMap::make();
  EXPECT_EQ(map->get(ChunkMap::kChunksMax - 1), Entry{});
  const std::vector<uint64_t> chunks = {0, 1983, 1984, 100'000, ChunkMap::kChunksMax - 1};
  for (const uint64_t chunk : {chunks[3], chunks[0], chunks[4], chunks[1], chunks[2]}) {
    ASSERT_EQ(map->prepare(chunk), 0);
    map->set(chunk, {static_cast<uint32_t>(chunk % 1000 + 1), 7, chunk});
    map->mark_changed(chunk);
  }
  EXPECT_TRUE(map->has_changed());
  std::vector<uint64_t> told, there;
  map->take_changed([&](uint64_t chunk, Entry entry) {
    told.push_back(chunk);
    EXPECT_EQ(entry.sum, chunk);
  });
  EXPECT_EQ(told, chunks);
  EXPECT_FALSE(map->has_changed());
  map->for_each(1, ChunkMap::kChunksMax - 1,
                [&](uint64_t chunk, Entry) { there.push_back(chunk); });
  EXPECT_EQ(there, (std::vector<uint64_t>{1983, 1984, 100'000}));
}

TEST(Grave, IsNeededWhileAHeldStateLiesInItsLife) {
  const uint32_t held[] = {3, 7};
  EXPECT_TRUE(versioned::is_needed({1, 3, 4}, held));
  EXPECT_TRUE(versioned::is_needed({1, 1, 9}, held));
  EXPECT_FALSE(versioned::is_needed({1, 1, 3}, held));
  EXPECT_FALSE(versioned::is_needed({1, 4, 7}, held));
  EXPECT_FALSE(versioned::is_needed({1, 8, 9}, held));
}

TEST(BlockHeap, GivesNeighboursOutInOrderAndKeepsTheDeadThatAreNeeded) {
  SimDisk disk(1);
  const auto file = disk.open("data", versioned::Disk::Mode::kCreate, true);
  BlockHeap heap(*file.value(), 1024);
  ASSERT_TRUE(heap.cover_file());
  int error = 0;
  const versioned::Run first = heap.allocate(10, error);
  EXPECT_EQ(first.first, 1u);
  EXPECT_EQ(first.count, 10u);
  EXPECT_EQ(heap.allocate(5, error).first, 11u);
  heap.free(3);
  EXPECT_EQ(heap.allocate(1, error).first, 16u);  // on, not back
  ASSERT_EQ(heap.bury({1, 1, 2}), 0);
  ASSERT_EQ(heap.bury({2, 2, 3}), 0);
  MappedArray<Grave> graves;
  heap.take_graves(graves);
  EXPECT_EQ(graves.size(), 2u);
  const uint32_t held[] = {2};
  heap.settle(graves, held);
  EXPECT_FALSE(heap.is_used(1));
  EXPECT_TRUE(heap.is_used(2));
  EXPECT_TRUE(heap.is_valid());
  heap.free_runs(heap.remove_unneeded({}));
  EXPECT_FALSE(heap.is_used(2));
  EXPECT_EQ(heap.used_count(), 13u);
  EXPECT_FALSE(heap.mark_used(4));
}

TEST(Journal, ATornEndIsIgnoredAndDamageBeforeWholeRecordsIsTold) {
  SimDisk disk(1);
  std::vector<uint64_t> ends;
  const std::vector<std::byte> payload(100, std::byte{9});
  {
    auto file = disk.open("journal.000001", versioned::Disk::Mode::kCreate, false);
    Journal journal(std::move(file.value()), 5, 0, 1);
    for (uint32_t i = 0; i < 3; ++i) {
      ASSERT_EQ(journal.append(RecordType::kCommit, i, payload, {}), 0);
      ends.push_back(journal.end());
    }
  }
  const auto file = disk.open("journal.000001", versioned::Disk::Mode::kWrite, false);
  const auto read_all = [&](Error& why) {
    JournalReader reader(*file.value(), "j");
    Record record;
    uint32_t count = 0;
    JournalReader::Next next;
    while ((next = reader.next(record)) == JournalReader::Next::kRecord) ++count;
    why = reader.why();
    return std::pair(count, next);
  };
  Error why;
  EXPECT_EQ(read_all(why), std::pair(3u, JournalReader::Next::kEnd));
  const std::byte wrong[1] = {std::byte{1}};
  ASSERT_EQ(file.value()->write(ends[1] + 80, wrong), 0);  // in the last
  EXPECT_EQ(read_all(why), std::pair(2u, JournalReader::Next::kEnd));
  ASSERT_EQ(file.value()->write(ends[1] + 80, std::span(payload).first(1)), 0);
  ASSERT_EQ(file.value()->write(ends[0] + 80, wrong), 0);  // in the second
  EXPECT_EQ(read_all(why), std::pair(1u, JournalReader::Next::kDamage));
  EXPECT_THAT(why.message, HasSubstr("offset " + std::to_string(ends[0])));
}

TEST(JournalName, IsReadBackAndNothingElseIsOne) {
  EXPECT_EQ(versioned::journal_number(versioned::journal_name(7)), 7u);
  EXPECT_EQ(versioned::journal_number(versioned::journal_name(12'345'678)), 12'345'678u);
  for (const char* const name :
       {"journal.new", "journal.00001", "journal.0000007", "data", "journal."})
    EXPECT_EQ(versioned::journal_number(name), 0u) << name;
}

}  // namespace
}  // namespace outcore::versioned_test
