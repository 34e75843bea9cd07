// Persistent heaps in checkpoints: what is in one is closed and whole, whatever the heap does
// later.
#include "outcore/persistent_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "heaps/tests/heap/persistent_scene.h"
#include "outcore/checkpoint.h"
#include "outcore/runtime.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using Numbers = persistent::vector<uint64_t>;

class CheckpointedHeap : public ::testing::TestWithParam<uint64_t> {
 protected:
  std::string pool() const { return "versioned:" + folder_.path() + "/pool"; }
  std::string in_pool() const { return pool() + "?object=graph"; }
  std::string in_file() const { return "file:" + folder_.path() + "/graph.heap"; }
  uint64_t small_budget() const { return std::max<uint64_t>(4 << 20, 12 * GetParam()); }
  PersistentHeapOptions options() const { return {.page_bytes = GetParam()}; }
  PersistentHeap create(Runtime& runtime, const std::string& uri) {
    return scene::take(PersistentHeap::create(runtime, uri, options()));
  }
  // Numbers from 0 on, and blocks of a size that changes which are free.
  static void grow(PersistentHeap& heap, uint64_t count) {
    Numbers* const numbers = scene::take(heap.find_or_construct<Numbers>("numbers"));
    while (numbers->size() < count) {
      numbers->push_back(numbers->size());
      void* const block = scene::take(heap.allocate(numbers->size() % 3000 + 1));
      if (numbers->size() % 3 != 0) heap.deallocate(block);
    }
  }
  static void expect_numbers(PersistentHeap& heap, uint64_t count) {
    const Numbers* const numbers = scene::take(heap.find<Numbers>("numbers"));
    ASSERT_EQ(numbers->size(), count);
    for (uint64_t i = 0; i < count; ++i) ASSERT_EQ((*numbers)[i], i);
  }
  static void expect_sound(const std::string& uri) {
    const auto findings = persistent_heap_check(uri);
    ASSERT_TRUE(findings.ok()) << findings.message();
    EXPECT_TRUE(findings->empty()) << findings->front();
  }

  scene::Folder folder_;
};

TEST_P(CheckpointedHeap, OpensAsItWas) {
  const int status = scene::wait_for(scene::run_child([&] {
    Runtime runtime = scene::start_runtime(small_budget());
    PersistentHeap heap = create(runtime, in_pool());
    grow(heap, 20'000);
    if (!checkpoint("first", {heap}).ok()) return 1;
    grow(heap, 30'000);
    if (!checkpoint("second", {heap}).ok()) return 2;
    grow(heap, 50'000);
    if (!heap.flush().ok()) return 3;
    grow(heap, 60'000);
    ::_exit(::testing::Test::HasFailure() ? 4 : 0);  // it is never closed
    return 0;
  }));
  ASSERT_EQ(status, 0);
  Runtime runtime = scene::start_runtime();
  // The last commit is that of flush(): a heap that was open.
  EXPECT_EQ(PersistentHeap::open(runtime, in_pool()).code(), EUCLEAN);
  {  // read-only, where it lies
    PersistentHeap first =
        scene::take(PersistentHeap::open_read_only(runtime, in_pool() + "&at=first"));
    expect_numbers(first, 20'000);
  }
  expect_sound(in_pool() + "&at=second");
  const auto last = restart(pool());
  ASSERT_TRUE(last.ok()) << last.message();
  EXPECT_EQ(last->checkpoint().name, "second");
  expect_sound(last->uri_of("graph"));
  PersistentHeap heap =
      scene::take(PersistentHeap::open(runtime, last->uri_of("graph"), options()));
  expect_numbers(heap, 30'000);
  grow(heap, 40'000);
  expect_numbers(heap, 40'000);
  ASSERT_TRUE(heap.close().ok());
  expect_sound(in_pool());
}

// Its file goes on as a heap that is open; the copy in the pool is a closed one.
TEST_P(CheckpointedHeap, OfAFileIsCopied) {
  Runtime runtime = scene::start_runtime(small_budget());
  CheckpointOptions to_pool;
  to_pool.pool = pool();
  PersistentHeap heap = create(runtime, in_file());
  grow(heap, 10'000);
  const auto unnamed = checkpoint("first", {heap}, to_pool);
  EXPECT_EQ(unnamed.code(), EINVAL);
  for (uint64_t count = 20'000; count <= 40'000; count += 10'000) {
    grow(heap, count);
    const auto made = checkpoint(std::to_string(count), {{heap, "graph"}}, to_pool);
    ASSERT_TRUE(made.ok()) << made.message();
  }
  grow(heap, 45'000);
  ASSERT_TRUE(heap.close().ok());
  expect_sound(in_file());
  for (uint64_t count = 20'000; count <= 40'000; count += 10'000) {
    const auto last = restart(pool(), std::to_string(count));
    ASSERT_TRUE(last.ok()) << last.message();
    expect_sound(last->uri_of("graph"));
    PersistentHeap then = scene::take(PersistentHeap::open(runtime, last->uri_of("graph")));
    expect_numbers(then, count);
    ASSERT_TRUE(then.close().ok());
  }
}

TEST_P(CheckpointedHeap, AFailedCheckpointChangesNothing) {
  Runtime runtime = scene::start_runtime(small_budget());
  PersistentHeap heap = create(runtime, in_pool());
  grow(heap, 10'000);
  CheckpointOptions unwilling;
  unwilling.quiesce = [] { return Status(Error{ECANCELED, "not now"}); };
  EXPECT_EQ(checkpoint("first", {heap}, unwilling).code(), ECANCELED);
  Numbers* const numbers = scene::take(heap.find<Numbers>("numbers"));
  const auto offset =
      static_cast<uint64_t>(reinterpret_cast<std::byte*>(numbers->data()) - heap.region().data());
  ASSERT_TRUE(heap.region().pin(offset, 8).ok());
  (*numbers)[0] = 0;
  EXPECT_EQ(checkpoint("first", {heap}).code(), EBUSY);
  ASSERT_TRUE(heap.region().unpin(offset, 8).ok());
  grow(heap, 20'000);
  ASSERT_TRUE(checkpoint("first", {heap}).ok());
  // A pool that is opened anew says "closed" of nothing that is not.
  grow(heap, 25'000);
  ASSERT_TRUE(heap.close().ok());
  ASSERT_TRUE(restart(pool()).ok());
  PersistentHeap then = scene::take(PersistentHeap::open(runtime, in_pool()));
  expect_numbers(then, 20'000);
}

TEST_P(CheckpointedHeap, OfTheKernelIsRefusedInOneLine) {
  PersistentHeapOptions options;
  options.paging = HeapPaging::kKernel;
  const std::string path = in_file() + ".kernel";
  PersistentHeap heap = scene::take(PersistentHeap::create(path, options));
  scene::take(heap.construct<Numbers>("numbers", 1000u, 1u));
  CheckpointOptions to_pool;
  to_pool.pool = pool();
  const auto made = checkpoint("first", {{heap, "graph"}}, to_pool);
  EXPECT_EQ(made.code(), EINVAL);
  EXPECT_NE(made.message().find("the kernel maps it"), std::string::npos) << made.message();
  EXPECT_NE(made.message().find(path), std::string::npos) << made.message();
  EXPECT_EQ(made.message().find('\n'), std::string::npos) << made.message();
  ASSERT_TRUE(heap.flush().ok());  // it goes on as if nothing had been asked
  ASSERT_TRUE(heap.close().ok());
  expect_sound(path);
}

// A second one waits for all of the first, the heap's header included.
TEST_P(CheckpointedHeap, TwoAtOnceAreOneAfterTheOther) {
  Runtime runtime = scene::start_runtime(small_budget());
  PersistentHeap heap = create(runtime, in_pool());
  grow(heap, 5'000);
  std::vector<std::thread> makers;
  for (int t = 0; t < 3; ++t)
    makers.emplace_back([&, t] {
      for (int i = 0; i < 8; ++i) {
        const auto made = checkpoint(std::to_string(t) + " " + std::to_string(i), {heap});
        EXPECT_TRUE(made.ok()) << made.message();
      }
    });
  for (std::thread& maker : makers) maker.join();
  grow(heap, 9'000);
  ASSERT_TRUE(heap.flush().ok());
  grow(heap, 9'500);
  ASSERT_TRUE(heap.close().ok());
  expect_sound(in_pool());
  for (int t = 0; t < 3; ++t) {
    const auto last = restart(pool(), std::to_string(t) + " 7");
    ASSERT_TRUE(last.ok()) << last.message();
    expect_sound(in_pool());
    PersistentHeap then = scene::take(PersistentHeap::open(runtime, in_pool()));
    expect_numbers(then, 5'000);
  }
}

TEST_P(CheckpointedHeap, IsNotFlushedMeanwhile) {
  Runtime runtime = scene::start_runtime(small_budget());
  PersistentHeap heap = create(runtime, in_pool());
  grow(heap, 5'000);
  CheckpointOptions options;
  options.quiesce = [&] { return heap.flush(); };
  int refused = 0;
  options.resume = [&] { refused += heap.flush().code() == EBUSY && heap.close().code() == EBUSY; };
  const auto made = checkpoint("first", {heap}, options);
  ASSERT_TRUE(made.ok()) << made.message();
  EXPECT_GE(refused, 1);
  ASSERT_TRUE(heap.flush().ok());
  grow(heap, 6'000);
  ASSERT_TRUE(heap.close().ok());
  expect_sound(in_pool());
  ASSERT_TRUE(restart(pool()).ok());
  PersistentHeap then = scene::take(PersistentHeap::open(runtime, in_pool()));
  expect_numbers(then, 5'000);
}

INSTANTIATE_TEST_SUITE_P(Pages, CheckpointedHeap, ::testing::Values(4096, 1 << 20),
                         [](const auto& of) { return std::to_string(of.param) + "Bytes"; });

}  // namespace
}  // namespace outcore
