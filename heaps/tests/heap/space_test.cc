// Space: what a heap does with addresses and space that run short, and with bytes that were there.
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "heaps/tests/heap/scene.h"
#include "heaps/volatile/heap_memory_store.h"
#include "outcore/heap.h"
#include "outcore/runtime.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using tests::kMiB;

class HeapSpace : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    HeapOptions options;
    options.reserve_bytes = 64 * kMiB;
    if (GetParam()) {
      runtime_.emplace(Runtime::start({.budget_bytes = 16 * kMiB}).value());
      heap_.emplace(Heap::create(*runtime_, options).value());
    } else {
      heap_.emplace(Heap::in_memory(options).value());
    }
  }
  std::optional<Runtime> runtime_;
  std::optional<Heap> heap_;
};
INSTANTIATE_TEST_SUITE_P(Memories, HeapSpace, testing::Bool());

TEST_P(HeapSpace, WhatWasFreedServesLargerBlocks) {
  void* small = heap_->allocate(20 * kMiB);
  ASSERT_NE(small, nullptr);
  heap_->free(small);
  auto* const large = static_cast<char*>(heap_->allocate(60 * kMiB));
  ASSERT_NE(large, nullptr) << "all of it is free";
  large[0] = large[60 * kMiB - 1] = 'x';
  heap_->free(large);
  small = heap_->allocate_zeroed(40 * kMiB);
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(static_cast<char*>(small)[0], 0);
  heap_->free(small);
}

TEST_P(HeapSpace, AWishThatIsHopelessLeavesTheRestToOthers) {
  void* const first = heap_->allocate(30 * kMiB);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(heap_->allocate(60 * kMiB), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  void* const second = heap_->allocate(30 * kMiB);
  EXPECT_NE(second, nullptr);
  heap_->free(first);
  heap_->free(second);
}

TEST(HeapCreate, ThatFailsLeavesTheBytesThatWereThere) {
  const scene::Folder folder;
  const std::string path = folder.path() + "/held";
  std::ofstream(path) << std::string(10'000, 'x');
  Runtime runtime = Runtime::start({.budget_bytes = 16 * kMiB}).value();
  HeapOptions options;
  options.store = path;
  options.may_overwrite = true;
  options.page_bytes = 5000;
  EXPECT_EQ(Heap::create(runtime, options).code(), EINVAL);
  EXPECT_EQ(std::filesystem::file_size(path), 10'000u);
}

// Gap pages of a read of many belong to others, who write and discard them meanwhile.
TEST(HeapMemoryStore, PagesBesideOnesThatChangeAreRead) {
  constexpr uint64_t kPage = 4096;
  const auto inner = open_store("memory:", {.is_writable = true, .size_bytes = 3 * kPage}).value();
  const auto store = heap::HeapMemoryStore::make(inner, 3 * kPage, 3 * kPage);
  const std::vector<std::byte> ones(kPage, std::byte{1});
  ASSERT_EQ(store->write(2 * kPage, ones), 0);
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    while (!is_over) {
      static_cast<void>(store->write(kPage, ones));
      static_cast<void>(store->discard(kPage, kPage));
    }
  });
  std::vector<std::byte> all(3 * kPage);
  uint64_t wrong = 0;
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_EQ(store->read(0, all), 0);
    wrong += all[0] != std::byte{0} || all[2 * kPage] != std::byte{1};
  }
  is_over = true;
  other.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace outcore
