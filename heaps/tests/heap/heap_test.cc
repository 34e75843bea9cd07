// What a heap promises of its blocks, against a model, with data several times the budget.
#include "outcore/heap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <thread>

#include "heaps/tests/heap/scene.h"

namespace outcore::tests {
namespace {

// Allocates, frees and resizes at random until `steps` are done; live blocks hold about
// `live_bytes`. What it ends with is freed, each block checked.
struct Churn {
  Heap& heap;
  uint64_t live_bytes_max;
  size_t large_max;
  std::mt19937_64 random;
  std::vector<Block> live{};
  uint64_t live_bytes = 0, wrong = 0, failed = 0, seed = 0;

  void add() {
    Block block;
    block.size = some_size(random, large_max);
    block.seed = random();
    const size_t alignment = random() % 8 == 0 ? size_t{1} << random() % 14 : 16;
    const bool is_zeroed = random() % 4 == 0;
    void* const p = is_zeroed ? heap.allocate_zeroed(block.size, alignment)
                              : heap.allocate(block.size, alignment);
    if (p == nullptr) {
      ++failed;
      return;
    }
    block.bytes = static_cast<unsigned char*>(p);
    wrong += reinterpret_cast<uintptr_t>(p) % alignment != 0;
    wrong += heap.usable_bytes(p) < block.size || !heap.owns(p);
    if (is_zeroed) block.for_each(block.size, [&](size_t i) { wrong += block.bytes[i] != 0; });
    block.fill();
    live.push_back(block);
    live_bytes += block.size;
  }
  void drop(size_t i) {
    wrong += !live[i].is_right();
    heap.free(live[i].bytes);
    live_bytes -= live[i].size;
    live[i] = live.back();
    live.pop_back();
  }
  void resize(size_t i) {
    Block& block = live[i];
    wrong += !block.is_right();
    const size_t size =
        random() % 2 == 0 ? some_size(random, large_max) : block.size + block.size / 4;
    void* const p = heap.reallocate(block.bytes, size);
    if (p == nullptr) {
      ++failed;
      return;
    }
    live_bytes += size - block.size;
    block.bytes = static_cast<unsigned char*>(p);
    const size_t kept = std::min(size, block.size);
    for (size_t at = 0; at < kept; at += 512) wrong += block.bytes[at] != block.byte_at(at);
    block.size = size;
    block.fill();
  }
  void run(uint64_t steps) {
    for (uint64_t step = 0; step < steps; ++step) {
      const uint64_t choice = random() % 8;
      if (live.empty() || (choice < 5 && live_bytes < live_bytes_max))
        add();
      else if (choice == 7)
        resize(random() % live.size());
      else
        drop(random() % live.size());
    }
    while (!live.empty()) drop(live.size() - 1);
  }
};

TEST(Heap, BlocksKeepTheirBytesWhileTheBudgetIsAQuarterOfThem) {
  Runtime runtime = start(8 * kMiB);
  Heap heap = make_heap(runtime);
  Churn churn{heap, 32 * kMiB, 1 << 20, std::mt19937_64(1)};
  churn.run(5000);
  EXPECT_EQ(churn.wrong, 0U);
  EXPECT_EQ(churn.failed, 0U);
  EXPECT_EQ(heap.metrics().allocated_blocks, 0U);
  EXPECT_EQ(heap.metrics().allocated_bytes, 0U);
  EXPECT_LE(runtime.metrics().gauges.used_bytes_max, 8 * kMiB);
  EXPECT_GT(runtime.metrics().counters.written_bytes, 0U);
}

TEST(Heap, ThreadsChurnAtTheSameTime) {
  for (const unsigned threads : {2U, 4U, 8U}) {
    Runtime runtime = start(4 * kMiB);
    Heap heap = make_heap(runtime);
    std::vector<Churn> churns;
    for (unsigned t = 0; t < threads; ++t)
      churns.push_back({heap, 12 * kMiB / threads, 256 << 10, std::mt19937_64(t)});
    std::vector<std::thread> running;
    for (Churn& churn : churns) running.emplace_back([&] { churn.run(4500 / threads); });
    for (std::thread& thread : running) thread.join();
    for (const Churn& churn : churns) EXPECT_EQ(churn.wrong + churn.failed, 0U);
    EXPECT_EQ(heap.metrics().allocated_blocks, 0U);
    EXPECT_LE(runtime.metrics().gauges.used_bytes_max, 4 * kMiB);
    EXPECT_GT(runtime.metrics().counters.written_bytes, 0U);
  }
}

TEST(Heap, OneThreadFreesWhatAnotherAllocated) {
  Runtime runtime = start(8 * kMiB);
  Heap heap = make_heap(runtime);
  for (int round = 0; round < 4; ++round) {
    std::vector<Block> blocks;
    std::thread([&] {
      std::mt19937_64 random(round);
      for (int i = 0; i < 2000; ++i) {
        Block block{nullptr, some_size(random, 64 << 10), random()};
        block.bytes = static_cast<unsigned char*>(heap.allocate(block.size));
        block.fill();
        blocks.push_back(block);
      }
    }).join();
    uint64_t wrong = 0;
    for (const Block& block : blocks) {
      wrong += !block.is_right();
      heap.free(block.bytes);
    }
    EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(heap.metrics().allocated_blocks, 0U);
  }
  // What came back was used again.
  EXPECT_LT(heap.metrics().address_bytes, 64 * kMiB);
}

TEST(Heap, AddressesAreAlignedUpToTwoMiB) {
  Runtime runtime = start(8 * kMiB);
  Heap heap = make_heap(runtime);
  std::vector<void*> blocks;
  for (size_t alignment = 1; alignment <= 2 * kMiB; alignment *= 2)
    for (const size_t size : {size_t{1}, size_t{100}, size_t{5000}, size_t{40000}}) {
      void* const p = heap.allocate(size, alignment);
      ASSERT_NE(p, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % alignment, 0U) << size << " at " << alignment;
      std::memset(p, 0xa5, size);
      blocks.push_back(p);
    }
  for (void* const p : blocks) heap.free(p);
  EXPECT_EQ(heap.metrics().allocated_bytes, 0U);
  errno = 0;
  EXPECT_EQ(heap.allocate(8, 24), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST(Heap, ZeroedMemoryReadsZeroAfterReuse) {
  Runtime runtime = start(8 * kMiB);
  Heap heap = make_heap(runtime);
  for (const size_t size :
       {size_t{40}, size_t{3000}, size_t{33000}, size_t{200000}, size_t{9000001}}) {
    for (int round = 0; round < 3; ++round) {
      auto* const dirty = static_cast<unsigned char*>(heap.allocate(size));
      std::memset(dirty, 0xff, size);
      heap.free(dirty);
      auto* const zeroed = static_cast<unsigned char*>(heap.allocate_zeroed(size));
      uint64_t wrong = 0;
      for (size_t i = 0; i < size; ++i) wrong += zeroed[i] != 0;
      EXPECT_EQ(wrong, 0U) << size;
      std::memset(zeroed, 0xff, size);
      heap.free(zeroed);
    }
  }
}

TEST(Heap, FreshMemoryIsFilledWithoutReading) {
  Runtime runtime = start(16 * kMiB);
  Heap heap = make_heap(runtime);
  auto* const bytes = static_cast<unsigned char*>(heap.allocate_zeroed(64 * kMiB));
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 64 * kMiB; i += 4096) sum += bytes[i];
  EXPECT_EQ(sum, 0U);
  EXPECT_EQ(runtime.metrics().counters.read_bytes, 0U);
  heap.free(bytes);
}

TEST(Heap, ReallocateKeepsWhatBothSizesHave) {
  Runtime runtime = start(8 * kMiB);
  Heap heap = make_heap(runtime);
  Block block{static_cast<unsigned char*>(heap.reallocate(nullptr, 10)), 10, 7};
  block.fill();
  for (const size_t size :
       {size_t{600}, size_t{70000}, size_t{300000}, 24 * kMiB, size_t{80000}, size_t{5}}) {
    auto* const p = static_cast<unsigned char*>(heap.reallocate(block.bytes, size));
    ASSERT_NE(p, nullptr);
    for (size_t i = 0; i < std::min(size, block.size); i += 512)
      ASSERT_EQ(p[i], block.byte_at(i)) << size;
    block.bytes = p;
    block.size = size;
    block.fill();
  }
  heap.free(block.bytes);
  EXPECT_EQ(heap.metrics().allocated_blocks, 0U);
}

TEST(Heap, ALargeBlockGrowsInPlaceWhereThereIsRoom) {
  Runtime runtime = start(8 * kMiB);
  Heap heap = make_heap(runtime);
  void* const first = heap.allocate(100 << 10);
  void* const second = heap.reallocate(first, 200 << 10);
  EXPECT_EQ(first, second);
  EXPECT_EQ(heap.usable_bytes(second), 200U << 10);
  EXPECT_EQ(heap.reallocate(second, 50 << 10), second);
  EXPECT_EQ(heap.usable_bytes(second), 52U << 10);
  heap.free(second);
}

// What is asked for is never less than it says.
TEST(Heap, AddressesThatAreNotToBeHadAreAnErrorAtCreation) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's own memory takes more addresses than the limit of the test";
#endif
  Runtime runtime = start(8 * kMiB);
  rlimit usual;
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &usual), 0);
  const rlimit few{uint64_t{8} << 30, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &few), 0);
  const Result<Heap> made = Heap::create(runtime, {.reserve_bytes = uint64_t{64} << 30});
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &usual), 0);
  EXPECT_EQ(made.code(), ENOMEM);
  EXPECT_NE(made.message().find("64"), std::string::npos) << made.message();
}

TEST(Heap, WhatCannotBeIsToldAtAllocation) {
  Runtime runtime = start(8 * kMiB);
  Heap heap = make_heap(runtime, {.reserve_bytes = 64 * kMiB});
  errno = 0;
  EXPECT_EQ(heap.allocate(65 * kMiB), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  errno = 0;
  EXPECT_EQ(heap.allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(heap.allocate(64, size_t{1} << 40), nullptr);
  EXPECT_THAT(heap.try_allocate(65 * kMiB).message(), testing::HasSubstr("reserve_bytes"));
  void* const most = heap.allocate(48 * kMiB);
  EXPECT_NE(most, nullptr);
  heap.free(most);
  void* const nothing = heap.allocate(0);
  EXPECT_NE(nothing, nullptr);
  heap.free(nothing);
  heap.free(nullptr);
}

TEST(Heap, WrongOptionsAreRefusedInWords) {
  Runtime runtime = start(8 * kMiB);
  EXPECT_EQ(Heap::create(runtime, {.page_bytes = 5000}).code(), EINVAL);
  EXPECT_EQ(Heap::create(runtime, {.store = "scratch:/nowhere/at/all"}).code(), ENOENT);
  EXPECT_EQ(Heap::create(runtime, {.store = "nonsense:"}).code(), EINVAL);
}

TEST(Heap, ADestroyedHeapDropsWhatIsStillAllocated) {
  Runtime runtime = start(8 * kMiB);
  for (int round = 0; round < 3; ++round) {
    Heap heap = make_heap(runtime);
    for (int i = 0; i < 1000; ++i) std::memset(heap.allocate(30000), 1, 30000);
    EXPECT_GT(heap.metrics().resident_bytes, 0U);
  }
  EXPECT_TRUE(runtime.metrics().regions.empty());
}

TEST(Heap, AThreadMayEndAfterAHeapThatItUsed) {
  Runtime runtime = start(8 * kMiB);
  std::atomic<int> turn{0};
  std::optional<Heap> heap(make_heap(runtime));
  std::thread thread([&] {
    heap->free(heap->allocate(100));
    turn = 1;
    turn.notify_all();
    turn.wait(1);
  });
  turn.wait(0);
  heap.reset();
  heap.emplace(make_heap(runtime));
  turn = 2;
  turn.notify_all();
  thread.join();
  heap->free(heap->allocate(100));
  EXPECT_EQ(heap->metrics().allocated_blocks, 0U);
}

TEST(Heap, LargerPagesWorkToo) {
  Runtime runtime = start(32 * kMiB);
  Heap heap = make_heap(runtime, {.page_bytes = 256 << 10, .kept_bytes_max = kMiB});
  Churn churn{heap, 48 * kMiB, 2 << 20, std::mt19937_64(3)};
  churn.run(8000);
  EXPECT_EQ(churn.wrong + churn.failed, 0U);
  EXPECT_EQ(heap.page_bytes(), 256U << 10);
}

TEST(Heap, TheRuntimesOptionsHoldWhereItsOwnAreNotSet) {
  RuntimeOptions options;
  options.budget_bytes = 16 * kMiB;
  options.page_bytes = 64 << 10;
  options.delivery = Delivery::kInThread;
  options.scratch_dir = "/nowhere/at/all";
  options.ignore_environment = true;
  Runtime runtime = std::move(Runtime::start(options)).value();
  EXPECT_EQ(Heap::create(runtime).code(), ENOENT);
  Heap heap = make_heap(runtime, {.store = "memory:"});
  EXPECT_EQ(heap.page_bytes(), 64U << 10);
  EXPECT_EQ(heap.delivery(), Delivery::kInThread);
}

TEST(Heap, InOrdinaryMemoryItIsTheSame) {
  Heap heap = std::move(Heap::in_memory({.kept_bytes_max = kMiB})).value();
  Churn churn{heap, 32 * kMiB, 1 << 20, std::mt19937_64(5)};
  churn.run(20000);
  EXPECT_EQ(churn.wrong + churn.failed, 0U);
  EXPECT_EQ(heap.metrics().allocated_blocks, 0U);
  EXPECT_FALSE(heap.delivery().has_value());
  EXPECT_TRUE(heap.pin(heap.allocate(10), 10).ok());
}

TEST(HeapDeathTest, ABlockThatIsFreedTwiceStopsTheProgram) {
  Runtime runtime = start(8 * kMiB);
  Heap heap = make_heap(runtime);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  void* const large = heap.allocate(100 << 10);
  int local = 0;
  EXPECT_DEATH(heap.free(&local), "is not a block of this heap");
  heap.free(large);
}

}  // namespace
}  // namespace outcore::tests
