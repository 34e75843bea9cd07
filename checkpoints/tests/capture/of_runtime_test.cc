// Checkpoints by a runtime's options: what they hold, what they leave out, what is refused.
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "heaps/tests/heap/persistent_scene.h"
#include "outcore/checkpoint.h"
#include "outcore/checkpoint_catalog.h"
#include "outcore/persistent_heap.h"
#include "outcore/runtime.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using std::chrono::steady_clock;

class OfRuntime : public ::testing::Test {
 protected:
  static constexpr uint64_t kBytes = 1 << 20;

  std::string pool() const { return "versioned:" + folder_.path() + "/pool"; }
  std::string file() const { return folder_.path() + "/plain"; }
  RuntimeOptions options(const std::string& pool, uint64_t every_ms = 10) const {
    RuntimeOptions o;
    o.budget_bytes = 8 << 20;
    o.ignore_environment = true;
    o.checkpoint_every_ms = every_ms;
    o.checkpoint_pool = pool;
    return o;
  }
  static Region map(Runtime& runtime, const std::string& uri) {
    MapOptions o;
    o.access = Access::kReadWrite;
    o.size_bytes = kBytes;
    o.may_create = true;
    return scene::take(runtime.map(uri, o));
  }
  static std::atomic_ref<uint64_t> word(const Region& region, uint64_t at = 0) {
    return std::atomic_ref<uint64_t>(reinterpret_cast<uint64_t*>(region.data())[at]);
  }
  // The number of the newest, once it is at least so much.
  uint32_t wait_for(uint32_t least) const {
    const auto until = steady_clock::now() + std::chrono::seconds(60);
    while (steady_clock::now() < until) {
      const auto all = list_checkpoints(pool());
      if (all && !all->empty() && all->back().number >= least) return all->back().number;
    }
    ADD_FAILURE() << "no checkpoint " << least << " in a minute";
    return 0;
  }

  scene::Folder folder_;
};

TEST_F(OfRuntime, RegionsOfThePoolAndFilesAreHeldAsTheyWereAtOneMoment) {
  {
    Runtime runtime = scene::take(Runtime::start(options(pool())));
    const Region plain = map(runtime, file());  // unmapped last: no checkpoint is without it
    const Region grid = map(runtime, pool() + "?object=grid");
    std::atomic<bool> is_over{false};
    std::thread writer([&] {
      for (uint64_t i = 1; !is_over; ++i) {  // the file is never ahead
        word(grid, i % (kBytes / 8 - 1) + 1).store(i);
        word(grid).store(i);
        word(plain).store(i);
        word(plain, i % (kBytes / 8 - 1) + 1).store(i);
      }
    });
    wait_for(wait_for(1) + 3);
    is_over = true;
    writer.join();
  }
  const auto all = list_checkpoints(pool());
  ASSERT_TRUE(all.ok()) << all.message();
  EXPECT_LE(all->size(), 3u);
  RuntimeOptions quiet = options(pool(), 0);
  Runtime runtime = scene::take(Runtime::start(quiet));
  for (const CheckpointInfo& one : all.value()) {
    EXPECT_TRUE(one.name.starts_with("periodic 2")) << one.name;
    const Region grid = scene::take(runtime.map(pool() + "?object=grid&at=" + one.name, {}));
    const Region copy =
        scene::take(runtime.map(pool() + "?object=" + file() + "&at=" + one.name, {}));
    const uint64_t a = word(grid), b = word(copy);
    EXPECT_TRUE(a == b || a == b + 1) << a << " and " << b;
    EXPECT_GT(a, 0u);
    for (const Region* region : {&grid, &copy})
      for (uint64_t i = 1; i < kBytes / 8; ++i) {
        const uint64_t value = word(*region, i);
        ASSERT_TRUE(value == 0 || (value <= a + 1 && value % (kBytes / 8 - 1) + 1 == i)) << i;
      }
  }
}

TEST_F(OfRuntime, WithoutAPoolItIsThatOfTheRegions) {
  Runtime runtime = scene::take(Runtime::start(options("none")));
  const Region grid = map(runtime, pool() + "?object=grid");
  word(grid).store(7);
  const uint32_t first = wait_for(1);
  word(grid).store(8);
  wait_for(first + 2);
}

TEST_F(OfRuntime, WhatCannotBeHeldIsSaidOnce) {
  const std::string heap_uri = "file:" + folder_.path() + "/heap";
  {
    PersistentHeap heap = scene::take(PersistentHeap::create(heap_uri));
    ASSERT_TRUE(heap.close().ok());
  }
  ::testing::internal::CaptureStderr();
  {
    Runtime runtime = scene::take(Runtime::start(options(pool())));
    const Region grid = map(runtime, pool() + "?object=grid");
    const Region heap = map(runtime, heap_uri);
    const Region scratch = map(runtime, "scratch:");
    wait_for(wait_for(1) + 2);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("checkpoints leave out"), std::string::npos) << said;
  EXPECT_NE(said.find("its addresses end with the process"), std::string::npos) << said;
  EXPECT_NE(said.find(heap_uri + " (a heap"), std::string::npos) << said;
  for (const std::string& one : {heap_uri, std::string("scratch:")})
    EXPECT_EQ(said.find(one), said.rfind(one)) << "once: " << said;
}

TEST_F(OfRuntime, RegionsComeAndGoMeanwhile) {
  Runtime runtime = scene::take(Runtime::start(options(pool())));
  const Region grid = map(runtime, pool() + "?object=grid");
  const uint32_t begin = wait_for(1);
  uint64_t round = 0;
  for (uint32_t now = begin; now < begin + 5; now = wait_for(1)) {
    Region plain = map(runtime, file());
    ++round;
    word(plain, round % (kBytes / 8)).store(round);
    word(grid).store(round);
    ASSERT_TRUE(plain.unmap().ok());
  }
  Region plain = map(runtime, file());
  for (uint64_t i = 1; i <= std::min(round, kBytes / 8 - 1); ++i)
    ASSERT_EQ(word(plain, i) % (kBytes / 8), i);
}

// The program's own checkpoint holds back a thread that maps and unmaps: neither waits for ever.
TEST_F(OfRuntime, TheProgramsOwnCheckpointsGoOnBesideThem) {
  Runtime runtime = scene::take(Runtime::start(options(pool())));
  const Region grid = map(runtime, pool() + "?object=grid");
  std::mutex step;  // held by the worker while it maps
  std::atomic<bool> is_over{false};
  std::thread worker([&] {
    while (!is_over) {
      const std::lock_guard<std::mutex> guard(step);
      Region plain = map(runtime, file());
      word(plain).store(1);
      EXPECT_TRUE(plain.unmap().ok());
    }
  });
  CheckpointOptions own;
  own.quiesce = [&] {
    const std::lock_guard<std::mutex> guard(step);  // the worker is between two steps once
    return Status();
  };
  own.resume = [] {};
  for (int i = 0; i < 20; ++i) {
    word(grid).store(static_cast<uint64_t>(i));
    const auto made = checkpoint("own " + std::to_string(i), {grid}, own);
    EXPECT_TRUE(made.ok() || made.code() == EAGAIN) << made.message();
  }
  is_over = true;
  worker.join();
}

TEST_F(OfRuntime, AHeapInThePoolIsAReasonToMakeNone) {
  const std::string uri = pool() + "?object=heap";
  {
    PersistentHeap heap = scene::take(PersistentHeap::create(uri));
    ASSERT_TRUE(heap.close().ok());
  }
  int said[2];
  ASSERT_EQ(::pipe(said), 0);
  const int before = ::dup(2);
  ASSERT_EQ(::dup2(said[1], 2), 2);
  {
    Runtime runtime = scene::take(Runtime::start(options(pool())));
    const Region heap = map(runtime, uri);
    const Region grid = map(runtime, pool() + "?object=grid");
    std::string text;
    for (char byte = 0; text.find("another checkpoint_pool") == std::string::npos; text += byte) {
      pollfd ready{said[0], POLLIN, 0};
      if (::poll(&ready, 1, 60'000) != 1 || ::read(said[0], &byte, 1) != 1) break;
    }
    EXPECT_NE(text.find("another checkpoint_pool"), std::string::npos) << text;
  }
  ASSERT_EQ(::dup2(before, 2), 2);
  for (const int fd : {said[0], said[1], before}) ::close(fd);
  const auto all = list_checkpoints(pool());
  EXPECT_TRUE(all.ok() && all->empty()) << all.message();
}

TEST_F(OfRuntime, WhatIsWrongIsSaidAtTheStart) {
  EXPECT_EQ(Runtime::start(options(pool(), 9)).code(), EINVAL);
  EXPECT_EQ(Runtime::start(options("file:/x")).code(), EINVAL);
  EXPECT_EQ(Runtime::start(options("versioned:")).code(), EINVAL);
  EXPECT_EQ(Runtime::start(options("versioned:" + folder_.path() + "/no/such")).code(), ENOENT);
}

TEST_F(OfRuntime, APoolThatAnotherProcessWritesIsWaitedFor) {
  int ready[2], over[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(over), 0);
  const pid_t other = scene::run_child([&] {
    Runtime runtime = scene::take(Runtime::start(options("none", 0)));
    const Region grid = map(runtime, pool() + "?object=grid");
    char byte = 1;
    return ::write(ready[1], &byte, 1) == 1 && ::read(over[0], &byte, 1) == 1 ? 0 : 1;
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::testing::internal::CaptureStderr();
  Runtime runtime = scene::take(Runtime::start(options(pool())));
  const Region plain = map(runtime, file());
  word(plain).store(1);
  ASSERT_EQ(::write(over[1], &byte, 1), 1);
  EXPECT_EQ(scene::wait_for(other), 0);
  wait_for(1);
  ::testing::internal::GetCapturedStderr();
  for (const int fd : {ready[0], ready[1], over[0], over[1]}) ::close(fd);
}

// A store that counts what is read of it.
class CountedStore final : public Store {
 public:
  explicit CountedStore(uint64_t size_bytes) : bytes_(size_bytes) {}
  uint64_t size_bytes() const override { return bytes_.size(); }
  int read(uint64_t offset, std::span<std::byte> into) override {
    read_bytes_ += into.size();
    std::memcpy(into.data(), bytes_.data() + offset, into.size());
    return 0;
  }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    std::memcpy(bytes_.data() + offset, from.data(), from.size());
    return 0;
  }
  StoreTraits traits() const override { return {}; }
  std::string uri() const override { return "counted:"; }
  std::atomic<uint64_t> read_bytes_{0};

 private:
  std::vector<std::byte> bytes_;
};

TEST_F(OfRuntime, OfACopyOnlyWhatChangedIsReadAgain) {
  constexpr uint64_t kLarge = 32 << 20, kPart = 64 << 10;
  Runtime runtime = scene::take(Runtime::start(options("none", 0)));
  const auto store = std::make_shared<CountedStore>(kLarge);
  MapOptions o;
  o.access = Access::kReadWrite;
  const Region region = scene::take(runtime.map(store, o));
  CheckpointOptions to;
  to.pool = pool();
  // The pool stays open between them, and with it the copy's state.
  const Region other = map(runtime, pool() + "?object=other");
  word(region, 0).store(1);
  ASSERT_TRUE(checkpoint("1", {{region, "copy"}}, to).ok());
  EXPECT_GE(store->read_bytes_, kLarge);
  store->read_bytes_ = 0;
  word(region, kLarge / 2 / 8).store(2);
  ASSERT_TRUE(checkpoint("2", {{region, "copy"}}, to).ok());
  EXPECT_LE(store->read_bytes_, 3 * kPart);
  const Region copy = scene::take(runtime.map(pool() + "?object=copy&at=2", {}));
  EXPECT_EQ(word(copy, 0), 1u);
  EXPECT_EQ(word(copy, kLarge / 2 / 8), 2u);
  // Somebody else wrote to the copy: all of it is compared again.
  {
    const Region spoilt = map(runtime, pool() + "?object=copy");
    word(spoilt, 9).store(9);
  }
  store->read_bytes_ = 0;
  ASSERT_TRUE(checkpoint("3", {{region, "copy"}}, to).ok());
  EXPECT_GE(store->read_bytes_, kLarge);
  const Region whole = scene::take(runtime.map(pool() + "?object=copy&at=3", {}));
  EXPECT_EQ(word(whole, 9), 0u);
  EXPECT_EQ(word(whole, kLarge / 2 / 8), 2u);
}

}  // namespace
}  // namespace outcore
