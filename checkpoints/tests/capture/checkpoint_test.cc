// Checkpoints of running programs, made by the public functions, and restarts from them.
#include "outcore/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "outcore/runtime.h"
#include "tests/folder.h"

namespace outcore {
namespace {

constexpr uint64_t kPage = 4096, kPages = 256, kSize = kPages * kPage;

class Checkpoints : public ::testing::Test {
 protected:
  void SetUp() override { start(8 << 20); }
  void start(uint64_t budget_bytes, uint64_t page_bytes = 4096) {
    RuntimeOptions options;
    options.budget_bytes = budget_bytes;
    options.page_bytes = page_bytes;
    auto started = Runtime::start(options);
    ASSERT_TRUE(started.ok()) << started.message();
    runtime_ = std::make_unique<Runtime>(std::move(started).value());
  }
  std::string pool() const { return "versioned:" + folder_.path() + "/pool"; }
  std::string object(const std::string& name) const { return pool() + "?object=" + name; }
  Region map(const std::string& uri, uint64_t size_bytes = kSize) {
    MapOptions options;
    options.access = Access::kReadWrite;
    options.size_bytes = size_bytes;
    options.may_create = true;
    auto region = runtime_->map(uri, options);
    EXPECT_TRUE(region.ok()) << region.message();
    return region ? std::move(region).value() : Region();
  }
  static uint64_t& word(const Region& region, uint64_t page) {
    return *reinterpret_cast<uint64_t*>(region.data() + page * kPage);
  }
  static uint64_t word_of(const Restart& last, const std::string& object, uint64_t page) {
    std::vector<std::byte> all(last.size_of(object).value());
    EXPECT_TRUE(last.read(object, all).ok());
    uint64_t value = 0;
    std::memcpy(&value, &all[page * kPage], sizeof value);
    return value;
  }

  scene::Folder folder_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(Checkpoints, WhatWasWrittenLaterIsGoneAfterARestart) {
  uint64_t step = 1;
  {
    const Region grid = map(object("grid"));
    for (uint64_t page = 0; page < kPages; ++page) word(grid, page) = page + 1;
    const auto made = checkpoint("first", {grid, {"step", step}});
    ASSERT_TRUE(made.ok()) << made.message();
    EXPECT_EQ(made->precopied_bytes + made->frozen_bytes, kSize);
    for (uint64_t page = 0; page < kPages; page += 3) word(grid, page) = 0;
    step = 2;
    EXPECT_EQ(word(grid, 3), 0u);
    ASSERT_TRUE(const_cast<Region&>(grid).sync().ok());
  }
  start(2 << 20, 64 << 10);  // another budget, other pages
  const auto last = restart(pool());
  ASSERT_TRUE(last.ok()) << last.message();
  EXPECT_EQ(last->checkpoint().name, "first");
  ASSERT_TRUE(last->read("step", step).ok());
  EXPECT_EQ(step, 1u);
  const Region grid = map(last->uri_of("grid"), 0);
  for (uint64_t page = 0; page < kPages; ++page) ASSERT_EQ(word(grid, page), page + 1) << page;
}

TEST_F(Checkpoints, EachIsWhatItWasAndCostsWhatChanged) {
  const Region grid = map(object("grid"));
  for (uint64_t i = 1; i <= 5; ++i) {
    word(grid, i) = i;
    const auto made = checkpoint("at " + std::to_string(i), {grid});
    ASSERT_TRUE(made.ok()) << made.message();
    EXPECT_EQ(made->precopied_bytes + made->frozen_bytes, kPage);
  }
  const auto all = list_checkpoints(pool());
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 5u);
  for (uint64_t i = 1; i <= 5; ++i) {
    MapOptions options;
    const auto uri = uri_of_checkpoint(pool(), "at " + std::to_string(i), "grid");
    const auto then = runtime_->map(uri.value(), options);
    ASSERT_TRUE(then.ok()) << then.message();
    for (uint64_t page = 1; page <= 5; ++page)
      EXPECT_EQ(word(then.value(), page), page <= i ? page : 0);
  }
}

// A thread writes i into a page and then into ordinary memory: what a checkpoint has of both must
// be of one moment.
TEST_F(Checkpoints, RegionsAndMemoryAreOfOneMoment) {
  const Region one = map(object("one")), two = map(object("two"));
  std::atomic<uint64_t> memory{0};
  std::atomic<bool> must_end{false};
  std::thread writer([&] {
    for (uint64_t i = 1; !must_end; ++i) {
      __atomic_store_n(&word(one, i % kPages), i, __ATOMIC_RELEASE);
      memory.store(i, std::memory_order_release);
      __atomic_store_n(&word(two, i * 7 % kPages), i, __ATOMIC_RELEASE);
    }
  });
  for (int round = 0; round < 20; ++round) {
    const uint64_t before = memory.load();
    const auto made = checkpoint("round " + std::to_string(round),
                                 {one, two, CheckpointPart("memory", &memory, sizeof memory)});
    ASSERT_TRUE(made.ok()) << made.message();
    EXPECT_GE(memory.load(), before);
  }
  must_end = true;
  writer.join();
  for (int round = 0; round < 20; ++round) {
    const std::string name = "round " + std::to_string(round);
    const auto read = [&](const std::string& object, std::span<std::byte> into) {
      const auto store = open_store(uri_of_checkpoint(pool(), name, object).value());
      ASSERT_TRUE(store.ok()) << store.message();
      ASSERT_EQ(store.value()->read(0, into), 0);
    };
    uint64_t i = 0;
    read("memory", std::as_writable_bytes(std::span(&i, 1)));
    std::vector<uint64_t> a(kSize / 8), b(kSize / 8);
    read("one", std::as_writable_bytes(std::span(a)));
    read("two", std::as_writable_bytes(std::span(b)));
    const uint64_t in_one = a[(i + 1) % kPages * kPage / 8];
    const uint64_t last_of_one = in_one == i + 1 ? i + 1 : i;
    for (uint64_t k = 0; k < kPages && k < last_of_one; ++k)
      ASSERT_EQ(a[(last_of_one - k) % kPages * kPage / 8], last_of_one - k) << name;
    uint64_t last_of_two = 0;
    for (uint64_t page = 0; page < kPages; ++page)
      last_of_two = std::max(last_of_two, b[page * kPage / 8]);
    // The memory says i: two has i - 1 or i; one may be a step ahead only if two is level.
    ASSERT_GE(last_of_two + 1, i) << name;
    ASSERT_LE(last_of_two, i) << name;
    if (last_of_one == i + 1) {
      ASSERT_EQ(last_of_two, i) << name;
    }
  }
}

TEST_F(Checkpoints, RegionsOfOtherStoresAreCopiedAndRestored) {
  const std::string path = folder_.path() + "/plain";
  CheckpointOptions options;
  options.pool = pool();
  Region plain = map("file:" + path);
  const Region grid = map(object("grid"));
  for (uint64_t page = 0; page < kPages; ++page) word(plain, page) = page ^ 5;
  word(grid, 0) = 1;
  const auto first = checkpoint("first", {grid, {plain, "plain"}}, options);
  ASSERT_TRUE(first.ok()) << first.message();
  EXPECT_EQ(first->copied_bytes, kSize - kPage);  // page 5 is zeros
  word(plain, 9) = 77;
  const auto second = checkpoint("second", {{plain, "plain"}}, options);
  ASSERT_TRUE(second.ok()) << second.message();
  EXPECT_EQ(second->copied_bytes, kPage);
  for (uint64_t page = 0; page < kPages; ++page) word(plain, page) = 3;
  const_cast<Region&>(grid) = Region();
  auto last = restart(pool(), "first");
  ASSERT_TRUE(last.ok()) << last.message();
  ASSERT_TRUE(last->restore("plain", plain).ok());
  for (uint64_t page = 0; page < kPages; ++page) ASSERT_EQ(word(plain, page), page ^ 5);
  last = restart(pool());
  ASSERT_TRUE(last.ok()) << last.message();
  ASSERT_TRUE(last->restore("plain", plain).ok());
  EXPECT_EQ(word(plain, 9), 77u);
}

TEST_F(Checkpoints, MemoryAloneNeedsNoRegion) {
  std::vector<uint64_t> values(100'000);
  for (uint64_t i = 0; i < values.size(); ++i) values[i] = i * i;
  CheckpointOptions options;
  options.pool = pool();
  const CheckpointPart part("values", values.data(), values.size() * sizeof(uint64_t));
  const auto made = checkpoint("first", {part}, options);
  ASSERT_TRUE(made.ok()) << made.message();
  values[70'000] = 1;
  const auto second = checkpoint("second", {part}, options);
  ASSERT_TRUE(second.ok()) << second.message();
  EXPECT_EQ(second->copied_bytes, kPage);
  const auto last = restart(pool(), "first");
  ASSERT_TRUE(last.ok()) << last.message();
  std::vector<uint64_t> back(values.size());
  ASSERT_TRUE(last->read("values", std::as_writable_bytes(std::span(back))).ok());
  for (uint64_t i = 0; i < back.size(); ++i) ASSERT_EQ(back[i], i * i);
}

TEST_F(Checkpoints, QuiesceDecidesTheMomentAndItsErrorEndsTheAttempt) {
  const Region grid = map(object("grid"));
  word(grid, 1) = 1;
  CheckpointOptions options;
  int resumed = 0;
  options.quiesce = [&]() -> Status {
    word(grid, 2) = 2;
    return {};
  };
  options.resume = [&] { word(grid, 2) = 3, ++resumed; };
  const auto made = checkpoint("first", {grid}, options);
  ASSERT_TRUE(made.ok()) << made.message();
  EXPECT_EQ(made->stopped_threads, 0u);
  EXPECT_GE(resumed, 1);
  EXPECT_EQ(word(grid, 2), 3u);
  options.quiesce = [] { return Status(Error{ECANCELED, "not now"}); };
  EXPECT_EQ(checkpoint("second", {grid}, options).code(), ECANCELED);
  const_cast<Region&>(grid) = Region();
  const auto last = restart(pool());
  ASSERT_TRUE(last.ok()) << last.message();
  EXPECT_EQ(last->checkpoint().name, "first");
  EXPECT_EQ(word_of(last.value(), "grid", 2), 2u);
}

TEST_F(Checkpoints, WrongInputIsRefusedWithWhy) {
  const Region grid = map(object("grid")), plain = map("file:" + folder_.path() + "/plain");
  uint64_t step = 0;
  word(grid, 0) = 1;
  ASSERT_TRUE(checkpoint("first", {grid}).ok());
  EXPECT_EQ(checkpoint("first", {grid}).code(), EEXIST);
  EXPECT_EQ(checkpoint("", {grid}).code(), EINVAL);
  EXPECT_EQ(checkpoint("a", {{"step", step}}).code(), EINVAL);         // which pool?
  EXPECT_EQ(checkpoint("a", {grid, plain}).code(), EINVAL);            // no name
  EXPECT_EQ(checkpoint("a", {grid, {plain, "grid"}}).code(), EINVAL);  // named twice
  EXPECT_EQ(checkpoint("a", {grid, {"", step}}).code(), EINVAL);
  EXPECT_EQ(checkpoint("a", {grid, CheckpointPart("m", grid.data(), 8)}).code(), EINVAL);
  EXPECT_EQ(checkpoint("a", {grid, CheckpointPart("m", nullptr, 8)}).code(), EINVAL);
  void* const nowhere = reinterpret_cast<void*>(kPage);
  EXPECT_EQ(checkpoint("a", {grid, CheckpointPart("m", nowhere, 8)}).code(), EFAULT);
  EXPECT_EQ(checkpoint("a", {grid, CheckpointPart("m", nowhere, ~uint64_t{0})}).code(), EINVAL);
  EXPECT_EQ(checkpoint("a", std::span<const CheckpointPart>()).code(), EINVAL);
  EXPECT_EQ(restart(pool()).code(), EBUSY);  // a region is on it
  EXPECT_EQ(restart(pool(), "frist").code(), ENOENT);
  EXPECT_NE(restart(pool(), "frist").message().find("'first'"), std::string::npos);
  EXPECT_EQ(list_checkpoints(pool())->size(), 1u);
}

}  // namespace
}  // namespace outcore
