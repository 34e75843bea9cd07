#include "core/budget/bounce_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace outcore::budget {
namespace {

constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

TEST(BouncePool, TakesAModestShareOfTheBudget) {
  for (uint64_t budget = 256 * kKiB; budget <= 64 * kGiB; budget *= 2) {
    const BouncePool::Shape shape = BouncePool::shape_for(budget);
    EXPECT_GE(shape.small_count, 1u);
    EXPECT_GE(shape.chunk_count, 1u);
    EXPECT_LE(shape.total_bytes(), 10 * kMiB) << budget;
    if (budget >= 4 * kMiB) {
      EXPECT_LE(shape.total_bytes(), budget / 14) << budget;
    } else {
      EXPECT_LE(shape.total_bytes(), budget / 2) << budget;
    }
  }
}

class Pool : public testing::Test {
 protected:
  Pool() { EXPECT_TRUE(pool_.allocate({4, 2, 64 * kKiB}).ok()); }
  BouncePool pool_;
};

TEST_F(Pool, GivesEachBufferToOne) {
  std::vector<std::span<std::byte>> small, chunks;
  for (auto buffer = pool_.try_acquire(1); !buffer.empty(); buffer = pool_.try_acquire(1))
    small.push_back(buffer);
  for (auto buffer = pool_.try_acquire(4097); !buffer.empty(); buffer = pool_.try_acquire(4097))
    chunks.push_back(buffer);
  EXPECT_EQ(small.size(), 4u);
  EXPECT_EQ(chunks.size(), 2u);
  std::set<std::byte*> bytes;
  for (const auto& list : {small, chunks})
    for (const std::span<std::byte> buffer : list)
      for (uint64_t i = 0; i < buffer.size(); i += 4096)
        EXPECT_TRUE(bytes.insert(&buffer[i]).second);
  EXPECT_EQ(bytes.size(), pool_.shape().total_bytes() / 4096);
  pool_.release(small[2]);
  EXPECT_EQ(pool_.try_acquire(4096).data(), small[2].data());
}

TEST_F(Pool, ALargerRequestGetsAChunk) {
  const std::span<std::byte> buffer = pool_.acquire(kMiB);
  EXPECT_EQ(buffer.size(), 64 * kKiB);
  pool_.release(buffer);
}

TEST_F(Pool, AWaiterGetsWhatIsGivenBack) {
  const std::span<std::byte> a = pool_.acquire(kMiB), b = pool_.acquire(kMiB);
  std::byte* got = nullptr;
  std::thread waiter([&] { got = pool_.acquire(kMiB).data(); });
  pool_.release(b);
  waiter.join();
  EXPECT_EQ(got, b.data());
  pool_.release(a);
}

TEST_F(Pool, ManyThreadsShareItInPeace) {
  std::atomic<uint64_t> shared = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) {
        const std::span<std::byte> buffer = pool_.acquire(t % 2 == 0 ? 4096 : 8192);
        const auto mine = static_cast<std::byte>(t + 1);
        std::memset(buffer.data(), t + 1, 64);
        for (int j = 0; j < 64; ++j) shared += buffer[j] != mine;
        pool_.release(buffer);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared, 0u);
}

TEST(BouncePool, WhatTheOwnerAskedForBesideIsItsOwn) {
  constexpr uint64_t kOwn = 96 * kKiB;
  BouncePool pool;
  ASSERT_TRUE(pool.allocate({4, 2, 64 * kKiB}, kOwn).ok());
  const std::span<std::byte> all = pool.memory(), own = pool.own();
  ASSERT_EQ(all.size(), 4 * 4 * kKiB + 2 * 64 * kKiB + kOwn);
  ASSERT_EQ(own.size(), kOwn);
  std::memset(all.data(), 1, all.size());
  std::memset(own.data(), 2, own.size());
  for (const uint64_t size : {4 * kKiB, 64 * kKiB})
    for (auto buffer = pool.try_acquire(size); !buffer.empty(); buffer = pool.try_acquire(size)) {
      EXPECT_EQ(buffer.front(), std::byte{1});
      EXPECT_EQ(buffer.back(), std::byte{1});
    }
}

// VmFlags of the mapping that begins at `address`; empty: there is none.
std::string flags_of(const void* address) {
  char wanted[32];
  std::snprintf(wanted, sizeof wanted, "%lx-", reinterpret_cast<unsigned long>(address));
  std::ifstream maps("/proc/self/smaps");
  bool is_there = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.starts_with(wanted)) is_there = true;
    if (is_there && line.starts_with("VmFlags:")) return line;
  }
  return "";
}

// Chunks are transferred as a whole: where the system has huge pages for them they lie on those.
TEST(BouncePool, ChunksBeginOnAHugePageWhereThereIsRoomForOne) {
  BouncePool large, small;
  ASSERT_TRUE(large.allocate({256, 7, 512 * kKiB}, 2 * kMiB).ok());
  ASSERT_TRUE(small.allocate({256, 1, 512 * kKiB}).ok());
  std::byte* const begin = large.memory().data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % (2 * kMiB), 0u);
  EXPECT_EQ(static_cast<uint64_t>(large.acquire(5000).data() - begin) % (512 * kKiB), 0u);
  if (::access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) != 0)
    GTEST_SKIP() << "this kernel has no transparent huge pages";
  EXPECT_NE(flags_of(begin).find(" hg"), std::string::npos);
  EXPECT_NE(flags_of(small.memory().data()).find(" nh"), std::string::npos);
}

TEST(PoolDeathTest, ABufferIsGivenBackOnceAndWhole) {
  BouncePool pool;
  ASSERT_TRUE(pool.allocate({4, 2, 64 * kKiB}).ok());
  const std::span<std::byte> a = pool.acquire(4096), b = pool.acquire(4096);
  EXPECT_DEATH(pool.release(a.first(64)), "buffer.size");
  pool.release(a);
  pool.release(b);
  EXPECT_DEATH(pool.release(a), "kTaken");
}

}  // namespace
}  // namespace outcore::budget
