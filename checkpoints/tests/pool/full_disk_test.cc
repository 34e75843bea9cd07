// Pools on disks that have room for so many bytes: what a commit that found no space leaves behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "checkpoints/pool/pool.h"
#include "checkpoints/tests/pool/model.h"
#include "checkpoints/tests/pool/pools.h"
#include "checkpoints/tests/pool/sim_disk.h"

namespace outcore::versioned_test {
namespace {

using versioned::Object;
using versioned::Pool;

class FullDiskOfPool : public ::testing::Test {
 protected:
  static constexpr uint64_t kCapacity = 16 << 20, kSmall = 256;

  void SetUp() override {
    disk_->capacity_bytes = kCapacity;
    pool_ = open_pool(disk_, kChunk);
    ASSERT_NE(pool_, nullptr);
    ASSERT_EQ(write(*pool_->create("small", kSmall * kChunk).value(), 1), 0);
    ASSERT_TRUE(pool_->commit("c1").ok());
  }
  // Writes chunk after chunk, until there is no space.
  int write(Object& object, uint32_t stamp, uint64_t stride = 1) {
    std::vector<std::byte> bytes(kChunk);
    for (uint64_t at = 0; at < kChunk; at += kUnit) fill_unit(bytes.data() + at, stamp);
    int error = 0;
    for (uint64_t at = 0; at < object.size_bytes() && error == 0; at += stride * kChunk)
      error = pool_->write(object, at, bytes);
    return error;
  }
  void expect_small(Pool& pool, uint32_t stamp) {
    std::vector<std::byte> bytes(kSmall * kChunk);
    ASSERT_EQ(pool.read(*pool.find("small"), 0, bytes), 0);
    for (uint64_t at = 0; at < bytes.size(); at += kUnit)
      ASSERT_TRUE(is_unit(bytes.data() + at, stamp)) << at;
  }
  // More than the disk has, so that neither it nor a commit has space.
  void fail_large() {
    ASSERT_EQ(write(*pool_->create("large", 4 * kCapacity).value(), 2), -ENOSPC);
    ASSERT_EQ(pool_->commit("c2").code(), ENOSPC);
    ASSERT_GT(disk_->used_bytes(), kCapacity - (64 << 10));
  }
  void expect_more_commits() {
    for (uint32_t i = 3; i < 9; ++i) {
      ASSERT_EQ(write(*pool_->find("small"), i), 0) << i;
      const auto done = pool_->commit("c" + std::to_string(i));
      ASSERT_TRUE(done.ok()) << done.message();
      ASSERT_TRUE(pool_->is_valid());
    }
    expect_small(*open_pool(disk_->after_kill(), kChunk), 8);
  }

  std::shared_ptr<SimDisk> disk_ = std::make_shared<SimDisk>(1);
  std::shared_ptr<Pool> pool_;
};

TEST_F(FullDiskOfPool, HasItsSpaceBackWhenThePoolIsClosedThatCouldNotCommit) {
  fail_large();
  pool_.reset();
  EXPECT_LT(disk_->used_bytes(), kCapacity / 2);
  pool_ = open_pool(disk_, kChunk);
  EXPECT_EQ(pool_->find("large"), nullptr);
  expect_small(*pool_, 1);
  expect_more_commits();
}

TEST_F(FullDiskOfPool, TakesCommitsAfterAWriterThatWasKilledInOneThatFoundNoSpace) {
  fail_large();
  disk_ = disk_->after_kill();
  pool_ = open_pool(disk_, kChunk);
  expect_small(*pool_, 1);
  expect_more_commits();
}

TEST_F(FullDiskOfPool, TakesTheCommitOnceAnObjectIsGoneThatNoCommitHas) {
  fail_large();
  ASSERT_EQ(pool_->commit("c2").code(), ENOSPC);
  ASSERT_TRUE(pool_->remove_object("large").ok());
  expect_more_commits();
}

// Each attempt ends an interval, so what is overwritten after it is not free at once. Free blocks
// that have space lie behind those that were given back, and are not the next to be taken.
TEST_F(FullDiskOfPool, TakesWritesAndCommitsThatHaveRoomInWhatWasFreed) {
  fail_large();
  Object& large = *pool_->find("large");
  ASSERT_EQ(pool_->resize(large, kCapacity / 4), 0);
  for (uint32_t i = 0; i < 20; ++i) {
    ASSERT_EQ(write(large, i), 0) << i;
    ASSERT_EQ(pool_->sync(), 0) << i;
  }
  EXPECT_TRUE(pool_->is_valid());
  expect_small(*open_pool(disk_->after_kill(), kChunk), 1);
}

TEST_F(FullDiskOfPool, TakesBatchesThatHaveRoomInWhatWasFreed) {
  fail_large();
  Object& large = *pool_->find("large");
  ASSERT_EQ(pool_->resize(large, kCapacity / 4), 0);
  std::vector<std::byte> bytes(kCapacity / 4, std::byte{3});
  for (int i = 0; i < 20; ++i) {
    StoreRequest request{0, bytes.data(), bytes.size(), true, 0};
    pool_->transfer(large, {&request, 1});
    ASSERT_EQ(request.result, 0) << i;
    ASSERT_EQ(pool_->sync(), 0) << i;
  }
  EXPECT_TRUE(pool_->is_valid());
}

// Every second block is free: no group of neighbours is.
TEST_F(FullDiskOfPool, TakesSpaceOfSingleBlocksForACommit) {
  fail_large();
  Object& large = *pool_->find("large");
  for (uint64_t chunk = 0; chunk < large.size_bytes() / kChunk; chunk += 2)
    ASSERT_EQ(pool_->discard(large, chunk * kChunk, kChunk), 0);
  const auto done = pool_->commit("c2");
  EXPECT_TRUE(done.ok()) << done.message();
  EXPECT_TRUE(pool_->is_valid());
}

TEST_F(FullDiskOfPool, KeepsWhatACommitThatFailsHasOverwritten) {
  fail_large();
  ASSERT_TRUE(pool_->remove_object("large").ok());
  ASSERT_EQ(write(*pool_->find("small"), 5), 0);
  disk_->faults.enospc_permille = 1000;  // also with what is given back
  for (int i = 0; i < 20; ++i) static_cast<void>(pool_->commit(std::string(200, 'x')));
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto found = open_pool(disk_->after_power_loss(seed), kChunk);
    ASSERT_NE(found, nullptr);
    ASSERT_TRUE(found->has_checkpoint("c1"));
    ASSERT_TRUE(found->roll_back("c1").ok());
    expect_small(*found, 1);
  }
}

}  // namespace
}  // namespace outcore::versioned_test
