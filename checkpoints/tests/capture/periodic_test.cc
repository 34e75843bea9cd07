// Checkpoints that are made by themselves: how many are kept, what ends them, what is refused.
#include "outcore/periodic_checkpoints.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <string>

#include "heaps/tests/heap/persistent_scene.h"
#include "outcore/persistent_heap.h"
#include "outcore/runtime.h"
#include "tests/folder.h"

namespace outcore {
namespace {

class Periodic : public ::testing::Test {
 protected:
  std::string pool() const { return "versioned:" + folder_.path() + "/pool"; }
  Region map() {
    MapOptions options;
    options.access = Access::kReadWrite;
    options.size_bytes = 1 << 20;
    options.may_create = true;
    return scene::take(runtime_.map(pool() + "?object=grid", options));
  }
  PeriodicOptions each(uint64_t every_ms = 10) {
    PeriodicOptions options;
    options.every_ms = every_ms;
    options.told = [this](const Result<CheckpointReport>& made) {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++(made ? made_ : failed_);
      changed_.notify_all();
    };
    return options;
  }
  void wait_for(const int& count, int least) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return count >= least; });
  }
  static uint64_t& word(const Region& region) {
    return *reinterpret_cast<uint64_t*>(region.data());
  }

  scene::Folder folder_;
  Runtime runtime_ = scene::start_runtime(4 << 20);
  std::mutex mutex_;
  std::condition_variable changed_;
  int made_ = 0, failed_ = 0;
};

TEST_F(Periodic, KeepsTheLastOfItsOwn) {
  uint64_t seen = 0;
  {
    const Region grid = map();
    ASSERT_TRUE(checkpoint("by hand", {grid}).ok());
    auto saved = PeriodicCheckpoints::start({grid, {"seen", seen}}, each());
    ASSERT_TRUE(saved.ok()) << saved.message();
    for (int round = 1; round <= 6; ++round) {
      seen = word(grid) = static_cast<uint64_t>(round);
      wait_for(made_, made_ + 1);
    }
    const Status s = saved->end();
    EXPECT_TRUE(s.ok()) << s.message();
    EXPECT_EQ(saved->made(), static_cast<uint64_t>(made_));
    EXPECT_GE(made_, 6);
  }
  EXPECT_EQ(failed_, 0);
  const auto all = list_checkpoints(pool());
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 4u);
  EXPECT_EQ(all->front().name, "by hand");
  for (size_t i = 1; i < 4; ++i) EXPECT_TRUE(all.value()[i].name.starts_with("periodic 2")) << i;
  const auto last = restart(pool());
  ASSERT_TRUE(last.ok()) << last.message();
  ASSERT_TRUE(last->read("seen", seen).ok());
  EXPECT_EQ(word(map()), seen);
}

TEST_F(Periodic, GoesOnAfterOneThatFailed) {
  Region grid = map();
  PeriodicOptions options = each();
  std::atomic<bool> refuses{true};
  options.checkpoint.quiesce = [&]() -> Status {
    if (refuses) return Error{ECANCELED, "not now"};
    return {};
  };
  options.checkpoint.resume = [] {};
  auto saved = PeriodicCheckpoints::start({grid}, options);
  ASSERT_TRUE(saved.ok()) << saved.message();
  wait_for(failed_, 2);
  refuses = false;
  wait_for(made_, 1);
  EXPECT_TRUE(saved->end().ok());
}

TEST_F(Periodic, TellsOfTheLastThatFailed) {
  Region grid = map();
  PeriodicOptions options = each();
  options.checkpoint.quiesce = [] { return Status(Error{ECANCELED, "not now"}); };
  options.checkpoint.resume = [] {};
  auto saved = PeriodicCheckpoints::start({grid}, options);
  ASSERT_TRUE(saved.ok()) << saved.message();
  wait_for(failed_, 1);
  EXPECT_EQ(saved->end().code(), ECANCELED);
  EXPECT_EQ(saved->made(), 0u);
}

TEST_F(Periodic, EndsWhenToldHasEnough) {
  Region grid = map();
  PeriodicCheckpoints* saved = nullptr;
  std::mutex start;
  PeriodicOptions options = each();
  options.told = [&, count = options.told](const Result<CheckpointReport>& made) {
    {
      const std::lock_guard<std::mutex> started(start);
      EXPECT_TRUE(saved->end().ok());
    }
    count(made);
  };
  std::unique_lock<std::mutex> starting(start);
  auto begun = PeriodicCheckpoints::start({grid}, options);
  ASSERT_TRUE(begun.ok()) << begun.message();
  saved = &begun.value();
  starting.unlock();
  wait_for(made_, 1);
  EXPECT_TRUE(saved->end().ok());
  EXPECT_EQ(saved->made(), 1u);
}

// Names that begin alike are another's.
TEST_F(Periodic, RemovesNobodyElses) {
  Region grid = map();
  for (const char* name : {"periodic by hand", "periodic fast 2026-11-22 10:00:00.000"})
    ASSERT_TRUE(checkpoint(name, {grid}).ok());
  PeriodicOptions options = each();
  options.keep = {.last = 1};
  auto saved = PeriodicCheckpoints::start({grid}, options);
  ASSERT_TRUE(saved.ok()) << saved.message();
  wait_for(made_, 3);
  ASSERT_TRUE(saved->end().ok());
  const auto all = list_checkpoints(pool());
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), 3u);
}

// The thread is the parent's: a child ends without it.
TEST_F(Periodic, AForkedChildHasNone) {
  const Region grid = map();
  auto saved = PeriodicCheckpoints::start({grid}, each());
  ASSERT_TRUE(saved.ok()) << saved.message();
  const int status = scene::wait_for(scene::run_child([&] { return saved->end().ok() ? 0 : 1; }));
  EXPECT_EQ(status, 0);
  wait_for(made_, 1);
}

TEST_F(Periodic, WrongInputIsRefused) {
  const Region grid = map();
  EXPECT_EQ(PeriodicCheckpoints::start({grid}, each(9)).code(), EINVAL);
  EXPECT_EQ(PeriodicCheckpoints::start({}, each()).code(), EINVAL);
  PeriodicOptions options = each();
  options.keep = {};
  EXPECT_EQ(PeriodicCheckpoints::start({grid}, options).code(), EINVAL);
  options = each();
  options.name.clear();
  EXPECT_EQ(PeriodicCheckpoints::start({grid}, options).code(), EINVAL);
  options = each();
  options.checkpoint.resume = [] {};
  EXPECT_EQ(PeriodicCheckpoints::start({grid}, options).code(), EINVAL);
  PersistentHeap heap = scene::take(PersistentHeap::create(runtime_, pool() + "?object=heap"));
  const auto refused = PeriodicCheckpoints::start({heap}, each());
  EXPECT_EQ(refused.code(), EINVAL);
  EXPECT_NE(refused.message().find("quiesce"), std::string::npos);
}

}  // namespace
}  // namespace outcore
