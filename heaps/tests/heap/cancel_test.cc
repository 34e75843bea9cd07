// Threads that are asked to end (pthread_cancel) finish their calls of heaps first.
#include <gtest/gtest.h>

#include <optional>

#include "heaps/tests/heap/persistent_scene.h"
#include "heaps/tests/heap/scene.h"
#include "tests/cancelled.h"

namespace outcore {
namespace {

using scene::expect_not_cancelled_within;
using scene::Folder;
using tests::kMiB;

TEST(CancelledThreads, FinishTheirCallsOfHeaps) {
  if (scene::takes_cancellation_over()) GTEST_SKIP() << "a sanitizer unwinds";
  const Folder folder;
  Runtime runtime = tests::start(4 * kMiB);
  HeapOptions options;
  options.store = "file:" + (folder / "heap");
  std::optional<Heap> heap;
  expect_not_cancelled_within("create", [&] { heap = tests::make_heap(runtime, options); });
  void* block = nullptr;
  expect_not_cancelled_within("allocate", [&] { block = heap->allocate(16 * kMiB); });
  ASSERT_NE(block, nullptr);
  std::memset(block, 1, 16 * kMiB);
  expect_not_cancelled_within("reallocate", [&] { block = heap->reallocate(block, 32 * kMiB); });
  ASSERT_NE(block, nullptr);
  expect_not_cancelled_within("allocate small", [&] { heap->free(heap->allocate(100)); });
  expect_not_cancelled_within("pin", [&] { EXPECT_OK(heap->pin(block, kMiB)); });
  expect_not_cancelled_within("unpin", [&] { EXPECT_OK(heap->unpin(block, kMiB)); });
  expect_not_cancelled_within("prefetch", [&] { EXPECT_OK(heap->prefetch(block, kMiB)); });
  expect_not_cancelled_within("free", [&] { heap->free(block); });
  expect_not_cancelled_within("trim", [&] { EXPECT_OK(heap->trim()); });
  expect_not_cancelled_within("destruction", [&] { heap.reset(); });
}

TEST(CancelledThreads, FinishTheirCallsOfPersistentHeaps) {
  if (scene::takes_cancellation_over()) GTEST_SKIP() << "a sanitizer unwinds";
  const Folder folder;
  const std::string path = folder / "heap", copy = folder / "copy";
  Runtime runtime = scene::start_runtime();
  std::optional<PersistentHeap> heap;
  const auto open = [&](auto result) { heap = scene::take(std::move(result)); };
  expect_not_cancelled_within("create", [&] { open(PersistentHeap::create(runtime, path)); });
  void* block = nullptr;
  expect_not_cancelled_within("allocate", [&] { block = scene::take(heap->allocate(8 * kMiB)); });
  std::memset(block, 1, 8 * kMiB);
  expect_not_cancelled_within("construct", [&] { scene::take(heap->construct<int>("one", 1)); });
  expect_not_cancelled_within("find", [&] { EXPECT_EQ(*scene::take(heap->find<int>("one")), 1); });
  expect_not_cancelled_within("flush", [&] { EXPECT_OK(heap->flush()); });
  expect_not_cancelled_within("copy", [&] { EXPECT_OK(heap->copy(copy)); });
  expect_not_cancelled_within("destroy", [&] { EXPECT_OK(heap->destroy<int>("one")); });
  expect_not_cancelled_within("deallocate", [&] { heap->deallocate(block); });
  expect_not_cancelled_within("trim", [&] { EXPECT_OK(heap->trim()); });
  expect_not_cancelled_within("close", [&] { EXPECT_OK(heap->close()); });
  expect_not_cancelled_within("open", [&] { open(PersistentHeap::open(runtime, path)); });
  expect_not_cancelled_within("destruction", [&] { heap.reset(); });
  EXPECT_TRUE(scene::take(PersistentHeap::is_consistent(path)));
  heap = scene::take(PersistentHeap::open_read_only(runtime, copy));
  EXPECT_EQ(*scene::take(heap->find<int>("one")), 1);
}

// What a cache of the thread answers is not asked of the store: enough of them are.
TEST(CancelledThreads, FinishAllocationsOfContainersInPersistentHeaps) {
  if (scene::takes_cancellation_over()) GTEST_SKIP() << "a sanitizer unwinds";
  const Folder folder;
  Runtime runtime = scene::start_runtime();
  PersistentHeap heap = scene::take(PersistentHeap::create(runtime, folder / "heap"));
  using Numbers = std::vector<uint64_t, PersistentAllocator<uint64_t>>;
  expect_not_cancelled_within("a container that grows", [&] {
    Numbers numbers(heap.allocator<uint64_t>());
    for (uint64_t i = 0; i < 1 << 20; ++i) numbers.push_back(i);
    EXPECT_EQ(numbers.back(), (1u << 20) - 1);
  });
  EXPECT_OK(heap.close());
}

}  // namespace
}  // namespace outcore
