// Regions over rbd:// stores, while OSDs die and come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>
#include <unordered_set>

#include "core/tests/store/store_case.h"
#include "far/tests/rbd/ceph.h"
#include "outcore/runtime.h"

namespace outcore::rbd_test {
namespace {

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

class RbdRegion : public testing::Test {
 protected:
  static constexpr uint64_t kPage = 4096;
  void SetUp() override { OUTCORE_NEEDS_CEPH(); }
  void start(uint64_t budget_bytes) {
    RuntimeOptions options;
    options.budget_bytes = budget_bytes;
    options.ignore_environment = true;
    auto runtime = Runtime::start(options);
    ASSERT_TRUE(runtime.ok()) << runtime.message();
    runtime_ = std::make_unique<Runtime>(std::move(runtime).value());
  }
  Region map(uint64_t size_bytes, const std::string& parameters) {
    MapOptions options;
    options.access = Access::kReadWrite;
    options.may_create = true;
    options.size_bytes = size_bytes;
    options.advice = Advice::kRandom;
    auto region = runtime_->map(Ceph::instance().uri(name_, parameters), options);
    EXPECT_TRUE(region.ok()) << region.message();
    return std::move(region).value();
  }
  static void tell(const std::string& command) { EXPECT_EQ(Ceph::instance().tell(command), ""); }

  const std::string name_ = Ceph::new_name();
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(RbdRegion, RandomWritesSendTheDirtyPagesAndHardlyMore) {
  constexpr uint64_t kBytes = 64 << 20;
  start(8 << 20);
  Region region = map(kBytes, "&order=18");
  std::mt19937_64 random(1);
  std::unordered_set<uint64_t> dirty;
  std::vector<uint8_t> oracle(kBytes);
  for (int i = 0; i < 4000; ++i) {
    const uint64_t at = random() % kBytes;
    region.data()[at] = std::byte{1};
    oracle[at] = 1;
    dirty.insert(at / kPage);
  }
  ASSERT_TRUE(region.sync().ok());
  const uint64_t sent = region.metrics().counters.written_bytes;
  EXPECT_GE(sent, dirty.size() * kPage);
  // A page that left and was written again counts twice: at most those beyond the budget.
  EXPECT_LE(sent, dirty.size() * kPage * 12 / 10) << "written twice, or more than the page";
  ASSERT_TRUE(region.unmap().ok());
  auto store = open_store(Ceph::instance().uri(name_));
  ASSERT_TRUE(store.ok()) << store.message();
  std::vector<uint8_t> back(kBytes);
  ASSERT_EQ(store.value()->read(0, std::as_writable_bytes(std::span(back))), 0);
  EXPECT_TRUE(back == oracle);
}

TEST_F(RbdRegion, AKilledOsdIsAPauseAndNoError) {
  constexpr uint64_t kBytes = 4 << 20;
  start(2 << 20);
  Region region = map(kBytes, "");
  uint64_t* const words = reinterpret_cast<uint64_t*>(region.data());
  constexpr uint64_t kStep = kPage / sizeof(uint64_t);
  std::atomic<bool> is_done{false};
  std::atomic<int> rounds{0};
  double longest = 0;
  uint64_t wrong = 0;
  const auto wait_for = [&](int count) {
    for (int now = rounds; now < count; now = rounds) rounds.wait(now);
  };
  std::thread user([&] {
    for (uint64_t round = 1; !is_done; ++round) {
      for (uint64_t page = 0; page < kBytes / kPage; ++page) {
        const auto began = std::chrono::steady_clock::now();
        wrong += words[page * kStep] != (round == 1 ? 0 : page * 1000 + round - 1);
        words[page * kStep] = page * 1000 + round;
        longest = std::max(longest, seconds_since(began));
      }
      ++rounds;
      rounds.notify_one();
    }
  });
  wait_for(1);
  tell("kill-osd 1");
  wait_for(rounds + 2);
  is_done = true;
  user.join();
  EXPECT_EQ(wrong, 0u);
  const Status synced = region.sync();
  EXPECT_TRUE(synced.ok()) << synced.message();
  EXPECT_EQ(region.metrics().counters.write_back_errors, 0u);
  EXPECT_EQ(region.metrics().counters.fill_errors, 0u);
  RecordProperty("longest_pause_ms", static_cast<int>(longest * 1000));
  std::printf("longest pause: %.1f s\n", longest);
  tell("start-osd 1");
  tell("wait-osds 3");
}

TEST_F(RbdRegion, WithoutAnyOsdAFlushFailsInTimeAndSucceedsWhenTheyAreBack) {
  constexpr uint64_t kBytes = 4 << 20;
  start(32 << 20);
  Region region = map(kBytes, "&timeout=3s");
  for (uint64_t at = 0; at < kBytes; at += kPage) region.data()[at] = std::byte{5};
  for (const char* osd : {"0", "1", "2"}) tell(std::string("kill-osd ") + osd);
  auto began = std::chrono::steady_clock::now();
  const Status flushed = region.flush();
  EXPECT_EQ(flushed.code(), ETIMEDOUT) << flushed.message();
  const double took = seconds_since(began);
  EXPECT_LT(took, 12) << "the timeout, once";  // banned-ok: the bound is the promise
  std::printf("without any OSD: %.1f s, %s\n", took, flushed.message().c_str());
  EXPECT_EQ(region.data()[kPage], std::byte{5}) << "what was dirty is still in memory";

  for (const char* osd : {"0", "1", "2"}) tell(std::string("start-osd ") + osd);
  tell("wait-osds 3");
  began = std::chrono::steady_clock::now();
  Status again = region.sync();
  while (!again.ok() && seconds_since(began) < 40) again = region.sync();
  EXPECT_TRUE(again.ok()) << again.message();
  ASSERT_TRUE(region.unmap().ok());
  auto store = open_store(Ceph::instance().uri(name_));
  ASSERT_TRUE(store.ok()) << store.message();
  store_test::Bytes back(kBytes);
  ASSERT_EQ(store.value()->read(0, back), 0);
  for (uint64_t at = 0; at < kBytes; at += kPage) ASSERT_EQ(back[at], std::byte{5}) << at;
}

}  // namespace
}  // namespace outcore::rbd_test
