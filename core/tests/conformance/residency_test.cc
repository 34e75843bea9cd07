// Residency: pins, prefetch, advice and a budget that changes.
#include <fcntl.h>
#include <sys/mman.h>

#include <thread>

#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class ResidencyOf : public OnMechanism {
 protected:
  // Fills so far, by faults and by prefetching.
  uint64_t fills() const {
    const Counters c = runtime_->metrics().counters;
    return c.fills + c.prefetch_fills;
  }
  // Maps without readahead, whose late fills would be counted together with those of the test.
  template <typename StoreOrUri>
  Region map_random(const StoreOrUri& store, Access access) {
    MapOptions options = map_options(access);
    options.advice = Advice::kRandom;
    return runtime_->map(store, options).value();
  }
  void read_all(const Region& region) {
    EXPECT_EQ(first_difference(region.data(), region.size_bytes()), region.size_bytes());
  }
  // Waits for the condition; lets other threads run between checks.
  template <typename F>
  static void wait_until(const F& holds) {
    while (!holds()) std::this_thread::yield();
  }
};
OUTCORE_ON_ALL_MECHANISMS(ResidencyOf);

TEST_P(ResidencyOf, PinnedPagesStay) {
  const auto store = std::make_shared<FaultyStore>(pattern(data_bytes()));
  store->watched_offset = page_bytes(), store->watched_size = 2 * page_bytes();
  Region region = map_random(store, Access::kReadWrite);
  ASSERT_TRUE(region.pin(page_bytes(), 2 * page_bytes()).ok());
  EXPECT_GT(store->watched_reads, 0u);
  const uint64_t before = store->watched_reads;
  read_all(region);
  read_all(region);
  evict_all(region);
  read_all(region);
  EXPECT_EQ(store->watched_reads, before);
  ASSERT_TRUE(region.unpin(page_bytes(), 2 * page_bytes()).ok());
  evict_all(region);
  EXPECT_EQ(region.metrics().resident_bytes, 0u) << "unpinned pages leave";
}

TEST_P(ResidencyOf, PinsNest) {
  const std::string path = file_of(4 * page_bytes());
  Region region = map(path, Access::kReadWrite).value();
  ASSERT_TRUE(region.pin(0, page_bytes()).ok());
  ASSERT_TRUE(region.pin(0, 1).ok());
  ASSERT_TRUE(region.unpin(0, page_bytes()).ok());
  evict_all(region);
  EXPECT_EQ(region.metrics().resident_bytes, page_bytes());
  ASSERT_TRUE(region.unpin(0, 1).ok());
  EXPECT_EQ(region.unpin(0, 1).code(), EINVAL);
  evict_all(region);
  EXPECT_EQ(region.metrics().resident_bytes, 0u);
}

TEST_P(ResidencyOf, MorePinsThanTheBudgetHoldsAreRefused) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadOnly).value();
  const Status s = region.pin(0, data_bytes());
  EXPECT_EQ(s.code(), ENOMEM);
  EXPECT_NE(s.message().find("least"), std::string::npos) << s.message();
  EXPECT_EQ(region.unpin(0, 1).code(), EINVAL) << "nothing stays pinned";
  read_all(region);
}

TEST_P(ResidencyOf, PinnedPagesAreWrittenBack) {
  const std::string path = file_of(4 * page_bytes());
  Region region = map(path, Access::kReadWrite).value();
  ASSERT_TRUE(region.pin(0, 2 * page_bytes()).ok());
  for (int round = 1; round < 4; ++round) {
    region.data()[page_bytes() + 3] = static_cast<std::byte>(round);
    ASSERT_TRUE(region.flush().ok());
    ASSERT_EQ(read_file(path)[page_bytes() + 3], static_cast<std::byte>(round));
  }
  region.data()[page_bytes() + 3] = std::byte{77};
  ASSERT_TRUE(region.unmap().ok()) << "a pin does not outlive its region";
  EXPECT_EQ(read_file(path)[page_bytes() + 3], std::byte{77});
}

TEST_P(ResidencyOf, WhatTheKernelWritesIntoPinnedMemoryIsKept) {
  const std::string source = folder_ / "source";
  write_file(source, pattern(4 * page_bytes(), 1 << 20));
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  int fd = ::open(source.c_str(), O_RDONLY | O_DIRECT);
  if (fd < 0) fd = ::open(source.c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  ASSERT_TRUE(region.pin(page_bytes(), 4 * page_bytes()).ok());
  ASSERT_TRUE(region.flush().ok());  // clean again, as far as faults tell
  ASSERT_EQ(::pread(fd, region.data() + page_bytes(), 4 * page_bytes(), 0),
            static_cast<ssize_t>(4 * page_bytes()));
  ::close(fd);
  ASSERT_TRUE(region.unpin(page_bytes(), 4 * page_bytes()).ok());
  evict_all(region);
  EXPECT_EQ(first_difference(region.data() + page_bytes(), 4 * page_bytes(), 1 << 20),
            4 * page_bytes());
  ASSERT_TRUE(region.unmap().ok());
  const Bytes now = read_file(path);
  EXPECT_EQ(first_difference(now.data() + page_bytes(), 4 * page_bytes(), 1 << 20),
            4 * page_bytes());
}

TEST_P(ResidencyOf, PrefetchBringsARangeIn) {
  const std::string path = file_of(data_bytes());
  Region region = map_random(path, Access::kReadOnly);
  ASSERT_TRUE(region.prefetch(page_bytes(), 4 * page_bytes()).ok());
  wait_until([&] { return region.metrics().resident_bytes == 4 * page_bytes(); });
  const Counters before = runtime_->metrics().counters;
  EXPECT_EQ(first_difference(region.data() + page_bytes(), 4 * page_bytes(), page_bytes()),
            4 * page_bytes());
  EXPECT_EQ(runtime_->metrics().counters.fills, before.fills);
}

TEST_P(ResidencyOf, PrefetchBringsAListIn) {
  const std::string path = file_of(data_bytes());
  MapOptions options = map_options(Access::kReadOnly);
  options.advice = Advice::kRandom;
  options.offset = page_bytes();
  Region region = runtime_->map(path, options).value();
  const uint64_t pages[] = {7, 1, 2, 5};
  ASSERT_TRUE(region.prefetch(pages).ok());
  wait_until([&] { return region.metrics().resident_bytes == 4 * page_bytes(); });
  const Counters before = runtime_->metrics().counters;
  for (const uint64_t page : pages)
    EXPECT_EQ(region.data()[page * page_bytes()], byte_at((page + 1) * page_bytes()));
  EXPECT_EQ(runtime_->metrics().counters.fills, before.fills);
  const uint64_t wrong[] = {data_bytes() / page_bytes()};
  EXPECT_EQ(region.prefetch(wrong).code(), EINVAL);
}

TEST_P(ResidencyOf, PrefetchOfMoreThanFitsIsDropped) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadOnly).value();
  ASSERT_TRUE(region.prefetch(0, data_bytes()).ok());
  ASSERT_TRUE(region.advise(0, data_bytes(), Advice::kWillNeed).ok());
  read_all(region);
}

TEST_P(ResidencyOf, PrefaultReturnsWhenTheRangeIsThere) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadOnly).value();
  ASSERT_TRUE(region.prefault(100, 3 * page_bytes()).ok());
  EXPECT_EQ(region.metrics().resident_bytes, 4 * page_bytes());
  EXPECT_EQ(first_difference(region.data() + 100, 3 * page_bytes(), 100), 3 * page_bytes());
  EXPECT_EQ(runtime_->metrics().counters.faults, 0u);
}

TEST_P(ResidencyOf, DontNeedEvictsAndKeepsTheBytes) {
  const std::string path = file_of(6 * page_bytes());
  Region region = map_random(path, Access::kReadWrite);
  read_all(region);
  region.data()[page_bytes()] = std::byte{0x42};
  evict_all(region);
  EXPECT_EQ(region.metrics().resident_bytes, 0u);
  EXPECT_EQ(read_file(path)[page_bytes()], std::byte{0x42});
  EXPECT_EQ(region.data()[page_bytes()], std::byte{0x42});
}

TEST_P(ResidencyOf, ColdPagesAreTheFirstToLeave) {
  const std::string path = file_of(data_bytes());
  Region region = map_random(path, Access::kReadOnly);
  const uint64_t held = (budget_bytes() - budget_bytes() / 4) / page_bytes();
  for (uint64_t page = 0; page < held; ++page)
    ASSERT_EQ(region.data()[page * page_bytes()], byte_at(page * page_bytes()));
  // Waits until they are filled. (Not by prefault: its hints may still be in the queue when the
  // pages have been evicted again.)
  wait_until([&] { return region.metrics().resident_bytes == held * page_bytes(); });
  // The youngest half is cold now. The budget shrinks slightly: the old pages stay.
  const uint64_t first_cold = held / 2;
  ASSERT_TRUE(
      region.advise(first_cold * page_bytes(), (held - first_cold) * page_bytes(), Advice::kCold)
          .ok());
  const uint64_t used = runtime_->metrics().gauges.used_bytes;
  ASSERT_TRUE(runtime_->resize_budget(used - page_bytes()).ok());

  const uint64_t before = fills();
  for (uint64_t page = 0; page < first_cold; ++page)
    ASSERT_EQ(region.data()[page * page_bytes()], byte_at(page * page_bytes()));
  EXPECT_EQ(fills(), before);
}

TEST_P(ResidencyOf, ASmallerBudgetEvictsBeforeItReturns) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  for (uint64_t at = 0; at < data_bytes(); at += 4096) region.data()[at] = std::byte{1};
  const uint64_t smaller = budget_bytes() * 3 / 4;
  const Status s = runtime_->resize_budget(smaller);
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(runtime_->budget_bytes(), smaller);
  EXPECT_LE(runtime_->metrics().gauges.used_bytes, smaller);
  for (uint64_t at = 0; at < data_bytes(); at += 4096) ASSERT_EQ(region.data()[at], std::byte{1});
  EXPECT_LE(runtime_->metrics().gauges.used_bytes, smaller);
  ASSERT_TRUE(runtime_->resize_budget(2 * budget_bytes()).ok());
  for (uint64_t at = 0; at < data_bytes(); at += 4096) ASSERT_EQ(region.data()[at], std::byte{1});
  EXPECT_GT(runtime_->metrics().gauges.used_bytes, budget_bytes()) << "the new room is used";
  EXPECT_EQ(runtime_->resize_budget(8192).code(), EINVAL);
  const Status tiny = runtime_->resize_budget(1024);
  EXPECT_EQ(tiny.code(), EINVAL);
  EXPECT_NE(tiny.message().find("to 1 KiB"), std::string::npos) << tiny.message();
}

TEST_P(ResidencyOf, UsedBytesNeverPassTheBudget) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      uint64_t x = 88172645463325252ull + static_cast<uint64_t>(t);
      for (int i = 0; i < (page_bytes() < kMiB ? 2000 : 150); ++i) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        auto* at = region.data() + x % (data_bytes() / 4096) * 4096;
        if (x % 3 == 0)
          at[100 + t] = std::byte{1};
        else
          static_cast<void>(*static_cast<volatile std::byte*>(at));
      }
    });
  for (std::thread& thread : threads) thread.join();
  const Gauges g = runtime_->metrics().gauges;
  EXPECT_LE(g.used_bytes_max, g.budget_bytes);
  EXPECT_GT(g.used_bytes_max, g.budget_bytes * 3 / 4);
}

// Runs of pages take all buffers; then a page is filled on its own, and needs one: the last page,
// which the end of the file cuts.
TEST_P(ResidencyOf, APrefetchOfScatteredPagesUpToTheCutEndEnds) {
  constexpr uint64_t kPages = 40;
  Runtime runtime = Runtime::start(options_with(64 * kMiB)).value();
  const uint64_t size = (kPages - 1) * page_bytes() + 100;
  Region region = runtime.map(file_of(size), map_options(Access::kReadOnly)).value();
  for (const uint64_t page : {kPages - 5, kPages - 3})
    ASSERT_EQ(region.data()[page * page_bytes()], byte_at(page * page_bytes()));
  std::vector<uint64_t> pages;
  for (uint64_t page = kPages - 6; page < kPages; ++page) pages.push_back(page);
  for (uint64_t page = 1; page < kPages - 8; page += 3) pages.push_back(page);
  ASSERT_TRUE(region.prefetch(pages).ok());
  EXPECT_EQ(first_difference(region.data(), size), size);
}

// Reclaim, or a program that asks for it, unmaps pages without Outcore's knowledge: they are still
// resident.
TEST_P(ResidencyOf, TheKernelMayTakeMappingsAway) {
  const uint64_t size = budget_bytes() / 2;
  const std::string path = file_of(size);
  Region region = map(path, Access::kReadWrite).value();
  Bytes expected = pattern(size);
  std::atomic<bool> is_done = false;
  std::thread kernel([&] {
    while (!is_done) ::madvise(region.data(), size, MADV_PAGEOUT);
  });
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < 4000; ++i) {
    const uint64_t at = i * 4099 % (size - 8);
    Bytes bytes(8);
    const Bytes now(8, static_cast<std::byte>(i));
    if (!region.read(at, bytes).ok()) ++wrong;
    wrong += !std::equal(bytes.begin(), bytes.end(), expected.begin() + static_cast<long>(at));
    if (!region.write(at, now).ok()) ++wrong;
    std::copy(now.begin(), now.end(), expected.begin() + static_cast<long>(at));
    const uint64_t other = i * 7919 % size;
    wrong += region.data()[other] != expected[other];
  }
  is_done = true;
  kernel.join();
  EXPECT_EQ(wrong, 0u);
  ASSERT_TRUE(region.unmap().ok());
  EXPECT_TRUE(read_file(path) == expected);
}

}  // namespace
}  // namespace outcore
