// Who is told when the last commit of a pool fails: whoever unmaps the last region that writes it,
// or one line on standard error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "checkpoints/pool/pool.h"
#include "checkpoints/store/versioned_store.h"
#include "checkpoints/tests/pool/pools.h"
#include "checkpoints/tests/pool/sim_disk.h"
#include "outcore/runtime.h"

namespace outcore::versioned_test {
namespace {

using store::VersionedStore;
using testing::HasSubstr;
using versioned::Pool;

class LastWriter : public ::testing::Test {
 protected:
  static constexpr uint64_t kBytes = 64 * kChunk;

  void SetUp() override {
    RuntimeOptions options;
    options.budget_bytes = 16 << 20;
    options.ignore_environment = true;
    auto started = Runtime::start(options);
    ASSERT_TRUE(started.ok()) << started.message();
    runtime_ = std::make_unique<Runtime>(std::move(started).value());
    pool_ = open_pool(disk_, kChunk);
  }
  Region map(const std::string& name) {
    auto object = pool_->find(name);
    if (object == nullptr) object = pool_->create(name, kBytes).value();
    pool_->note_store();
    MapOptions options;
    options.access = Access::kReadWrite;
    auto mapped = runtime_->map(std::make_shared<VersionedStore>(
                                    pool_, object, "versioned:sim?object=" + name, StoreLimits()),
                                options);
    EXPECT_TRUE(mapped.ok()) << mapped.message();
    return std::move(mapped).value();
  }
  static void fill(const Region& region, int value) {
    std::memset(region.data(), value, region.size_bytes());
  }
  // What another process would find now.
  int found(const std::string& name) const {
    const auto pool = open_pool(disk_->after_kill(), kChunk);
    std::vector<std::byte> bytes(kChunk);
    const auto object = pool->find(name);
    if (object == nullptr) return -1;
    EXPECT_EQ(pool->read(*object, kBytes - kChunk, bytes), 0);
    return static_cast<int>(bytes[0]);
  }

  std::shared_ptr<SimDisk> disk_ = std::make_shared<SimDisk>(1);
  std::shared_ptr<Pool> pool_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(LastWriter, CommitsByUnmapping) {
  Region a = map("a");
  fill(a, 1);
  EXPECT_TRUE(a.unmap().ok());
  EXPECT_EQ(found("a"), 1);
}

TEST_F(LastWriter, AlonePaysForTheCommit) {
  Region a = map("a"), b = map("b");
  fill(a, 1);
  fill(b, 2);
  EXPECT_TRUE(a.unmap().ok());
  EXPECT_EQ(found("a"), -1);
  EXPECT_TRUE(b.unmap().ok());
  EXPECT_EQ(found("a"), 1);
  EXPECT_EQ(found("b"), 2);
}

TEST_F(LastWriter, StaysMappedWhileTheDiskIsFull) {
  Region a = map("a");
  fill(a, 1);
  ASSERT_TRUE(a.sync().ok());
  disk_->faults.enospc_permille = 1000;
  Status failed;
  for (int i = 0; i < 10'000 && failed.ok(); ++i) {  // until the journal's room is used up
    pool_->create(std::to_string(i), kBytes).value();
    failed = pool_->commit().status();
  }
  ASSERT_EQ(failed.code(), ENOSPC);
  disk_->faults.enospc_permille = 0;
  fill(a, 2);
  ASSERT_TRUE(a.flush().ok());
  disk_->faults.enospc_permille = 1000;
  failed = a.unmap();
  EXPECT_EQ(failed.code(), ENOSPC);
  EXPECT_THAT(failed.message(), HasSubstr("unmap versioned:sim?object=a: commit sim: "));
  ASSERT_TRUE(a.is_mapped());
  fill(a, 3);
  EXPECT_EQ(a.unmap().code(), ENOSPC);
  disk_->faults.enospc_permille = 0;
  EXPECT_TRUE(a.unmap().ok());
  EXPECT_FALSE(a.is_mapped());
  EXPECT_EQ(found("a"), 3);
}

TEST_F(LastWriter, IsToldThatASyncFailed) {
  Region a = map("a");
  fill(a, 1);
  ASSERT_TRUE(a.sync().ok());
  fill(a, 2);
  disk_->faults.sync_eio_permille = 1000;
  EXPECT_EQ(a.unmap().code(), EIO);
  disk_->faults.sync_eio_permille = 0;
  ASSERT_TRUE(a.is_mapped());
  EXPECT_EQ(a.unmap(true).code(), EIO);
  EXPECT_FALSE(a.is_mapped());
  testing::internal::CaptureStderr();
  pool_.reset();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");  // it was told already
}

TEST_F(LastWriter, NorAnyOtherIsToldThatAllIsWellAfterASyncThatFailed) {
  Region a = map("a"), b = map("b");
  fill(a, 1);
  disk_->faults.sync_eio_permille = 1000;
  EXPECT_EQ(a.sync().code(), EIO);
  disk_->faults.sync_eio_permille = 0;
  fill(b, 2);
  for (Region* const region : {&a, &b}) {
    EXPECT_EQ(region->flush().code(), EIO);
    EXPECT_EQ(region->unmap().code(), EIO);
    EXPECT_THAT(region->flush().message(), HasSubstr("open the pool again"));
  }
  uint64_t sum = 0;  // it can be read, and written, so that it can be stored elsewhere
  for (uint64_t i = 0; i < kBytes; ++i) sum += static_cast<uint64_t>(b.data()[i]);
  EXPECT_EQ(sum, 2 * kBytes);
  for (Region* const region : {&a, &b}) EXPECT_EQ(region->unmap(true).code(), EIO);
}

TEST_F(LastWriter, IsTheLastOfAStoreThatIsMappedTwice) {
  const auto object = pool_->create("a", kBytes).value();
  const auto store =
      std::make_shared<VersionedStore>(pool_, object, "versioned:sim", StoreLimits());
  MapOptions options;
  options.access = Access::kReadWrite;
  options.frames = FrameKind::kShared;
  auto first = runtime_->map(store, options), second = runtime_->map(store, options);
  if (!second.ok()) GTEST_SKIP() << second.message();
  fill(first.value(), 1);
  EXPECT_TRUE(first->unmap().ok());
  EXPECT_EQ(found("a"), -1);
  EXPECT_TRUE(second->unmap().ok());
  EXPECT_EQ(found("a"), 1);
}

TEST_F(LastWriter, OfAStoreWithoutARegionIsToldOnStandardError) {
  const auto object = pool_->create("a", kBytes).value();
  pool_->note_store();
  std::vector<std::byte> bytes(kBytes, std::byte{1});
  ASSERT_EQ(pool_->write(*object, 0, bytes), 0);
  disk_->faults.sync_eio_permille = 1000;
  testing::internal::CaptureStderr();
  pool_.reset();
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("outcore: what was written to sim since its last commit is lost: "));
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
}

}  // namespace
}  // namespace outcore::versioned_test
