// What a pool promises, one sentence at a time, on a disk in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "checkpoints/pool/pool.h"
#include "checkpoints/tests/pool/model.h"
#include "checkpoints/tests/pool/pools.h"
#include "checkpoints/tests/pool/sim_disk.h"

namespace outcore::versioned_test {
namespace {

using testing::HasSubstr;
using versioned::Object;
using versioned::Pool;
using versioned::PoolOptions;

class PoolTest : public testing::Test {
 protected:
  std::shared_ptr<Pool> open(uint32_t chunk_bytes = 4096) { return open_pool(disk_, chunk_bytes); }
  static void write(Pool& pool, Object& object, uint64_t chunk, uint32_t stamp) {
    std::vector<std::byte> bytes(4096);
    for (uint64_t at = 0; at < bytes.size(); at += kUnit) fill_unit(bytes.data() + at, stamp);
    ASSERT_EQ(pool.write(object, chunk * 4096, bytes), 0);
  }
  static bool holds(Pool& pool, Object& object, uint64_t chunk, uint32_t stamp) {
    std::vector<std::byte> bytes(4096);
    return pool.read(object, chunk * 4096, bytes) == 0 && is_unit(bytes.data(), stamp) &&
           is_unit(bytes.data() + 4096 - kUnit, stamp);
  }
  std::shared_ptr<SimDisk> disk_ = std::make_shared<SimDisk>(1);
};

TEST_F(PoolTest, ACommitWritesWhatChangedAndTwentyBytesAChunk) {
  const auto pool = open();
  const auto object = pool->create("a", 1000 * 4096).value();
  for (uint32_t i = 0; i < 1000; ++i) write(*pool, *object, i, i + 1);
  ASSERT_TRUE(pool->commit("first").ok());
  const uint64_t held_before = pool->usage().live_bytes + pool->usage().held_bytes;
  for (uint32_t i = 0; i < 10; ++i) write(*pool, *object, i * 100, 5000 + i);
  ASSERT_TRUE(pool->commit("second").ok());
  const auto usage = pool->usage();
  EXPECT_EQ(usage.live_bytes + usage.held_bytes - held_before, 10u * 4096);
  EXPECT_EQ(usage.held_bytes, 10u * 4096);
}

TEST_F(PoolTest, RemovingACheckpointGivesBackWhatItAloneNeeded) {
  const auto pool = open();
  const auto object = pool->create("a", 10 * 4096).value();
  for (uint32_t i = 0; i < 10; ++i) write(*pool, *object, i, 1);
  ASSERT_TRUE(pool->commit("first").ok());
  for (uint32_t i = 0; i < 4; ++i) write(*pool, *object, i, 2);
  ASSERT_TRUE(pool->commit("second").ok());
  for (uint32_t i = 0; i < 2; ++i) write(*pool, *object, i, 3);
  ASSERT_EQ(pool->sync(), 0);
  const auto checkpoints = pool->checkpoints();
  ASSERT_EQ(checkpoints.size(), 2u);
  EXPECT_EQ(checkpoints[0].only_bytes, 4u * 4096);
  EXPECT_EQ(checkpoints[1].only_bytes, 2u * 4096);
  EXPECT_EQ(checkpoints[0].about.size_bytes, 10u * 4096);
  ASSERT_TRUE(pool->remove({"first"}).ok());
  EXPECT_EQ(pool->usage().held_bytes, 2u * 4096);
  ASSERT_TRUE(pool->remove({"second"}).ok());
  EXPECT_EQ(pool->usage().held_bytes, 0u);
  EXPECT_TRUE(holds(*pool, *object, 0, 3));
  EXPECT_TRUE(holds(*pool, *object, 2, 2));
  EXPECT_TRUE(holds(*pool, *object, 9, 1));
}

TEST_F(PoolTest, SeveralCheckpointsAreRemovedAllOrNone) {
  const auto pool = open();
  ASSERT_TRUE(pool->commit("a").ok());
  ASSERT_TRUE(pool->commit("b").ok());
  EXPECT_EQ(pool->remove({"a", "none"}).code(), ENOENT);
  EXPECT_EQ(pool->checkpoints().size(), 2u);
  const auto reader = pool->open_at("b").value();
  EXPECT_EQ(pool->remove({"a", "b"}).code(), EBUSY);
  EXPECT_EQ(pool->checkpoints().size(), 2u);
  EXPECT_EQ(pool->commit("a").code(), EEXIST);
  EXPECT_EQ(pool->rename("a", "b").code(), EEXIST);
  EXPECT_TRUE(pool->rename("a", "c").ok());
  EXPECT_EQ(pool->checkpoints()[0].about.name, "c");
}

TEST_F(PoolTest, ARollbackBringsBackObjectsAndWhatFollowsThem) {
  auto pool = open();
  auto object = pool->create("a", 4 * 4096).value();
  write(*pool, *object, 0, 1);
  write(*pool, *object, 1, 2);
  ASSERT_TRUE(pool->commit("first", "before the change").ok());
  write(*pool, *object, 0, 3);
  ASSERT_EQ(pool->resize(*object, 8 * 4096), 0);
  ASSERT_TRUE(pool->remove_object("a").ok());
  EXPECT_EQ(pool->read(*object, 0, {}), -ENOENT);
  ASSERT_TRUE(pool->create("b", 4096).ok());
  ASSERT_TRUE(pool->commit("second").ok());
  ASSERT_TRUE(pool->roll_back("first").ok());
  EXPECT_EQ(pool->find("b"), nullptr);
  object = pool->find("a");
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(object->size_bytes(), 4u * 4096);
  EXPECT_TRUE(holds(*pool, *object, 0, 1));
  ASSERT_TRUE(pool->roll_back("second").ok());
  EXPECT_NE(pool->find("b"), nullptr);
  ASSERT_TRUE(pool->roll_back("first").ok());
  ASSERT_TRUE(pool->remove({"second", "first"}).ok());
  pool.reset();
  pool = open(0);
  object = pool->find("a");
  EXPECT_TRUE(holds(*pool, *object, 1, 2));
  EXPECT_TRUE(pool->is_valid());
}

TEST_F(PoolTest, ABatchThatIsLargerThanALeafOfTheMapIsWrittenAndReadBack) {
  const auto pool = open();
  constexpr uint64_t kBytes = 5000 * 4096;
  const auto object = pool->create("a", kBytes).value();
  std::vector<std::byte> bytes(kBytes);
  for (uint64_t at = 0; at < kBytes; at += kUnit)
    fill_unit(bytes.data() + at, static_cast<uint32_t>(at / kUnit + 1));
  std::vector<StoreRequest> batch = {{0, bytes.data(), kBytes / 2, true, 77},
                                     {kBytes / 2, bytes.data() + kBytes / 2, kBytes / 2, true, 77}};
  pool->transfer(*object, batch);
  std::vector<std::byte> back(kBytes);
  for (StoreRequest& r : batch) {
    ASSERT_EQ(r.result, 0);
    r.is_write = false;
    r.bytes = back.data() + r.offset;
  }
  pool->transfer(*object, batch);
  EXPECT_EQ(back, bytes);
  ASSERT_EQ(pool->sync(), 0);
  EXPECT_TRUE(pool->is_valid());
}

TEST_F(PoolTest, WhatWasNotCommittedIsGoneAfterAKill) {
  auto pool = open();
  auto object = pool->create("a", 4096).value();
  write(*pool, *object, 0, 1);
  ASSERT_EQ(pool->sync(), 0);
  write(*pool, *object, 0, 2);
  disk_ = disk_->after_kill();
  const auto next = open(0);
  EXPECT_TRUE(holds(*next, *next->find("a"), 0, 1));
}

TEST_F(PoolTest, AFullDiskRefusesWritesAndCommitsAndLosesNothing) {
  const auto pool = open();
  const auto object = pool->create("a", 4000 * 4096).value();
  write(*pool, *object, 0, 1);
  ASSERT_TRUE(pool->commit("first").ok());
  disk_->faults.enospc_permille = 1000;
  std::vector<std::byte> bytes(4096, std::byte{7});
  EXPECT_EQ(pool->write(*object, 4096, bytes), -ENOSPC);
  EXPECT_THAT(pool->last_failure(), HasSubstr("remove checkpoints"));
  Status status;
  for (int i = 0; i < 1000 && status; ++i) status = pool->commit("c" + std::to_string(i)).status();
  EXPECT_EQ(status.code(), ENOSPC);
  EXPECT_TRUE(pool->remove({"c0"}).ok());  // what it needs was kept free
  EXPECT_TRUE(holds(*pool, *object, 0, 1));
  EXPECT_TRUE(holds(*pool, *object, 1, 0));
  disk_->faults.enospc_permille = 0;
  EXPECT_TRUE(pool->commit("second").ok());
  EXPECT_TRUE(pool->is_valid());
}

TEST_F(PoolTest, AfterASyncThatFailedNothingIsCommittedAndReadsGoOn) {
  const auto pool = open();
  const auto object = pool->create("a", 8 * 4096).value();
  write(*pool, *object, 0, 1);
  ASSERT_TRUE(pool->commit("first").ok());
  write(*pool, *object, 0, 2);
  disk_->faults.sync_eio_permille = 1000;
  EXPECT_EQ(pool->sync(), -EIO);
  disk_->faults.sync_eio_permille = 0;
  EXPECT_EQ(pool->sync(), -EIO);
  EXPECT_THAT(pool->can_commit().message(), HasSubstr("open the pool again"));
  EXPECT_TRUE(holds(*pool, *object, 0, 2));
  write(*pool, *object, 1, 3);
  EXPECT_TRUE(holds(*pool, *object, 1, 3));
  disk_ = disk_->after_kill();
  const auto next = open(0);
  EXPECT_TRUE(holds(*next, *next->find("a"), 0, 1));
}

TEST_F(PoolTest, WrongChunksNamesAndFoldersAreRefused) {
  PoolOptions options;
  EXPECT_THAT(Pool::open(disk_, options).message(), HasSubstr("create one first"));
  options.may_create = true;
  options.chunk_bytes = 5000;
  EXPECT_THAT(Pool::open(disk_, options).message(), HasSubstr("a power of two"));
  auto pool = open(8192);
  EXPECT_EQ(pool->create("", 1).code(), EINVAL);
  EXPECT_EQ(pool->create(std::string(256, 'x'), 1).code(), EINVAL);
  EXPECT_EQ(pool->create("x", UINT64_MAX).code(), EFBIG);
  const auto object = pool->create("x", 1).value();
  EXPECT_EQ(pool->write(*object, 0, std::vector<std::byte>(1, std::byte{1})), 0);
  EXPECT_EQ(pool->create("x", 1).code(), EEXIST);
  EXPECT_EQ(pool->roll_back("none").code(), ENOENT);
  EXPECT_EQ(pool->open_at("none").code(), ENOENT);
  pool.reset();
  options.chunk_bytes = 4096;
  EXPECT_THAT(Pool::open(disk_, options).message(), HasSubstr("leave out chunk="));
  ASSERT_EQ(disk_->unlink("journal.000001"), 0);
  options.chunk_bytes = 0;
  EXPECT_THAT(Pool::open(disk_, options).message(), HasSubstr("journals are missing"));
}

TEST_F(PoolTest, AJournalThatIsMissingIsNoticed) {
  PoolOptions options;
  options.may_create = true;
  options.delta_bytes_min = 100;
  {
    const auto pool = Pool::open(disk_, options).value();
    const auto object = pool->create("a", 100 * 4096).value();
    for (uint32_t i = 0; i < 20; ++i) {
      for (uint32_t chunk = 0; chunk < 10; ++chunk) write(*pool, *object, chunk, i * 10 + chunk);
      ASSERT_TRUE(pool->commit("c" + std::to_string(i)).ok());
    }
  }
  const auto journals = versioned::list_journals(*disk_).value();
  ASSERT_GT(journals.size(), 2u);
  ASSERT_EQ(disk_->unlink(versioned::journal_name(journals.back())), 0);
  const auto pool = Pool::open(disk_, options);
  EXPECT_THAT(pool.message(), HasSubstr(versioned::journal_name(journals.back()) + " is missing"));
  EXPECT_THAT(pool.message(), HasSubstr("'c0'"));
  const auto first = versioned::Snapshot::open(disk_, "c0");
  ASSERT_TRUE(first.ok()) << first.message();
}

}  // namespace
}  // namespace outcore::versioned_test
