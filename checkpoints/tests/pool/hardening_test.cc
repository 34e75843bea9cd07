// What goes wrong around a pool, one thing at a time: syncs that fail, full disks, journals that
// somebody else made, objects that become smaller under their users.
#include <gtest/gtest.h>

#include <cerrno>

#include "checkpoints/pool/pool.h"
#include "checkpoints/tests/pool/model.h"
#include "checkpoints/tests/pool/pools.h"
#include "checkpoints/tests/pool/sim_disk.h"

namespace outcore::versioned_test {
namespace {

using versioned::Encoder;
using versioned::Journal;
using versioned::Pool;
using versioned::PoolOptions;
using versioned::RecordType;

std::shared_ptr<Pool> open_on(const std::shared_ptr<SimDisk>& disk) {
  return open_pool(disk, kChunk);
}

std::vector<std::byte> bytes_of(int value, size_t count = kChunk) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

TEST(VersionedHardening, WhatIsBuiltUponARecordWhoseSyncFailedIsFoundAfterALossOfPower) {
  for (uint64_t failing = 1; failing <= 8; ++failing) {
    auto disk = std::make_shared<SimDisk>(failing);
    auto pool = open_on(disk);
    const auto object = pool->create("a", 200 * kChunk).value();
    ASSERT_EQ(pool->sync(), 0);
    // A record of several sectors: what is appended writes the last of them again.
    ASSERT_EQ(pool->write(*object, 0, bytes_of(1, 200 * kChunk)), 0);
    const uint64_t begin = disk->operation_count;
    disk->before_change = [&] {
      disk->faults.sync_eio_permille = disk->operation_count >= begin + failing ? 1000 : 0;
    };
    pool->sync();
    const auto again = disk->after_kill();
    disk->before_change = nullptr;
    pool = open_on(again);
    ASSERT_NE(pool, nullptr);
    ASSERT_EQ(pool->write(*pool->find("a"), kChunk, bytes_of(2)), 0);
    ASSERT_EQ(pool->sync(), 0);
    ASSERT_EQ(pool->write(*pool->find("a"), kChunk, bytes_of(3)), 0);
    ASSERT_EQ(pool->sync(), 0);
    for (uint64_t seed = 0; seed < 30; ++seed) {
      const auto found = open_on(again->after_power_loss(seed));
      ASSERT_NE(found, nullptr) << failing;
      auto bytes = bytes_of(0);
      ASSERT_EQ(found->read(*found->find("a"), kChunk, bytes), 0);
      EXPECT_EQ(bytes, bytes_of(3));
    }
  }
}

TEST(VersionedHardening, APoolThatCannotBeClosedOnAFullDiskStaysOpen) {
  auto disk = std::make_shared<SimDisk>(1);
  auto pool = open_on(disk);
  const auto object = pool->create("a", 4000 * kChunk).value();
  for (uint64_t i = 0; i < 4000; ++i) ASSERT_EQ(pool->write(*object, i * kChunk, bytes_of(1)), 0);
  disk->faults.enospc_permille = 1000;
  EXPECT_EQ(pool->close().code(), ENOSPC);
  disk->faults.enospc_permille = 0;
  EXPECT_TRUE(pool->close().ok());
  pool = open_on(disk);
  auto bytes = bytes_of(0);
  ASSERT_EQ(pool->read(*pool->find("a"), 3999 * kChunk, bytes), 0);
  EXPECT_EQ(bytes, bytes_of(1));
}

TEST(VersionedHardening, ACheckpointCanBeRemovedFromAPoolThatWasOpenedOnAFullDisk) {
  auto disk = std::make_shared<SimDisk>(1);
  ASSERT_TRUE(open_on(disk)->commit("first").ok());
  const auto pool = open_on(disk);
  disk->faults.enospc_permille = 1000;
  EXPECT_TRUE(pool->remove({"first"}).ok());
}

TEST(VersionedHardening, APartOfAChunkThatIsTwiceInABatchLeavesTheRest) {
  auto disk = std::make_shared<SimDisk>(1);
  const auto pool = open_on(disk);
  const auto object = pool->create("a", 2 * kChunk).value();
  ASSERT_EQ(pool->write(*object, 0, bytes_of(1, 2 * kChunk)), 0);
  auto half = bytes_of(2, kChunk / 2);
  StoreRequest twice[] = {{0, half.data(), half.size(), true, 0},
                          {0, half.data(), half.size(), true, 0}};
  pool->transfer(*object, twice);
  auto bytes = bytes_of(0);
  ASSERT_EQ(pool->read(*object, 0, bytes), 0);
  EXPECT_EQ(bytes.front(), std::byte{2});
  EXPECT_EQ(bytes.back(), std::byte{1});
}

TEST(VersionedHardening, WhatIsDiscardedUpToTheEndIsAHoleInAChunkThatIsNotWhole) {
  auto disk = std::make_shared<SimDisk>(1);
  const auto pool = open_on(disk);
  const auto object = pool->create("a", kChunk + 100).value();
  ASSERT_EQ(pool->write(*object, 0, bytes_of(1, kChunk + 100)), 0);
  ASSERT_EQ(pool->discard(*object, 50, kChunk + 50), 0);
  EXPECT_TRUE(pool->is_hole(*object, kChunk, 100));
  EXPECT_FALSE(pool->is_hole(*object, 0, 10));
}

TEST(VersionedHardening, BehindTheEndThatARollbackMovedEverythingIsRefused) {
  auto disk = std::make_shared<SimDisk>(1);
  const auto pool = open_on(disk);
  const auto object = pool->create("a", kChunk).value();
  ASSERT_TRUE(pool->commit("small").ok());
  ASSERT_EQ(pool->resize(*object, 4 * kChunk), 0);
  ASSERT_EQ(pool->write(*object, 3 * kChunk, bytes_of(1)), 0);
  ASSERT_TRUE(pool->roll_back("small").ok());
  auto bytes = bytes_of(7);
  EXPECT_EQ(pool->read(*object, 3 * kChunk, bytes), -ENXIO);
  EXPECT_EQ(pool->write(*object, 3 * kChunk, bytes), -ENXIO);
  EXPECT_EQ(pool->discard(*object, 3 * kChunk, kChunk), -ENXIO);
  auto inside = bytes_of(8);
  StoreRequest batch[] = {{3 * kChunk, bytes.data(), kChunk, true, 0},
                          {0, inside.data(), kChunk, true, 0}};
  pool->transfer(*object, batch);
  EXPECT_EQ(batch[0].result, -ENXIO);
  EXPECT_EQ(batch[1].result, 0);
  ASSERT_EQ(pool->resize(*object, 4 * kChunk), 0);
  ASSERT_EQ(pool->read(*object, 3 * kChunk, bytes), 0);
  EXPECT_EQ(bytes, bytes_of(0));
}

TEST(VersionedHardening, AFolderThatCannotBeListedIsAnError) {
  auto disk = std::make_shared<SimDisk>(1);
  disk->cannot_list = true;
  PoolOptions options;
  options.may_create = true;
  EXPECT_EQ(Pool::open(disk, options).code(), EMFILE);
}

// Records with right checksums that no pool writes.
TEST(VersionedHardening, AJournalThatSomebodyElseMadeIsDamagedAndNoMore) {
  struct Wrong {
    uint32_t chunk_bytes = kChunk;
    uint64_t size_bytes = 8 * kChunk;
    uint32_t block = 1, birth = 1;
    const char* why = "";
  };
  const Wrong wrongs[] = {{3, kChunk, 1, 1, "chunks"},
                          {kChunk, uint64_t{1} << 63, 1, 1, "larger"},
                          {kChunk, 8 * kChunk, UINT32_MAX, UINT32_MAX, "block"},
                          {kChunk, 8 * kChunk, 1, 0, "block"},
                          {kChunk, 8 * kChunk, 1, 9, "block"}};
  for (const Wrong& wrong : wrongs) {
    SimDisk disk(1);
    auto file = disk.open("journal.000001", SimDisk::Mode::kCreate, false);
    Journal journal(std::move(file.value()), 7, 0, 1);
    Encoder base, object, map;
    base.put(wrong.chunk_bytes);
    base.put(uint32_t{2});
    ASSERT_EQ(journal.append(RecordType::kBase, 5, base.bytes(), {}), 0);
    object.put(uint32_t{1});
    object.put(wrong.size_bytes);
    object.put(std::string_view("a"));
    ASSERT_EQ(journal.append(RecordType::kObject, 5, object.bytes(), {}), 0);
    map.put(uint32_t{1});
    map.put(uint32_t{1});
    map.put(versioned::Change{0, wrong.block, wrong.birth, 0});
    ASSERT_EQ(journal.append(RecordType::kMap, 5, map.bytes(), {}), 0);
    ASSERT_EQ(journal.append(RecordType::kBaseEnd, 5, {}, {}), 0);
    const auto loaded = versioned::load_journal(disk, 1);
    ASSERT_TRUE(loaded.ok());
    EXPECT_EQ(loaded->damage.code(), EIO) << wrong.why;
    EXPECT_FALSE(loaded->has_base);
  }
}

}  // namespace
}  // namespace outcore::versioned_test
