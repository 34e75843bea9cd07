// Discard: pages in memory are discarded in batches, or one by one if a batch is not possible.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class DiscardOf : public OnMechanism {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OnMechanism::SetUp());
    if (IsSkipped()) return;
    store_ = std::make_shared<FaultyStore>(pattern(data_bytes()));
    MapOptions options = map_options(Access::kReadWrite);
    options.advice = Advice::kRandom;
    region_ = runtime_->map(store_, options).value();
  }
  std::byte* page_at(uint64_t page) { return region_.data() + page * page_bytes(); }
  void write_first(uint64_t pages) {
    for (uint64_t page = 0; page < pages; ++page) page_at(page)[9] = std::byte{0x9E};
  }
  void expect_zeros(uint64_t first, uint64_t end) {
    for (uint64_t page = first; page < end; ++page) {
      EXPECT_EQ(page_at(page)[0], std::byte{0}) << page;
      EXPECT_EQ(page_at(page)[9], std::byte{0}) << page;
    }
  }
  void expect_kept(uint64_t first, uint64_t end) {
    for (uint64_t page = first; page < end; ++page) {
      EXPECT_EQ(page_at(page)[0], byte_at(page * page_bytes())) << page;
      EXPECT_EQ(page_at(page)[9], std::byte{0x9E}) << page;
    }
  }

  std::shared_ptr<FaultyStore> store_;
  Region region_;
};
OUTCORE_ON_ALL_MECHANISMS(DiscardOf);

// A keeper thread may interfere; then the pages are discarded one by one, and the test tries again.
// The pin waits for the thread that filled the page, which may be off the processor while it still
// holds the page, long after the touching thread was woken.
TEST_P(DiscardOf, ManyPagesInMemoryAreOneCallOfTheStore) {
  uint64_t fewest = 6;
  for (int round = 0; round < 50 && fewest > 1; ++round) {
    write_first(8);
    ASSERT_TRUE(region_.pin(page_bytes(), 6 * page_bytes()).ok());
    ASSERT_TRUE(region_.unpin(page_bytes(), 6 * page_bytes()).ok());
    const uint64_t before = store_->discards;
    ASSERT_TRUE(region_.discard(page_bytes(), 6 * page_bytes()).ok());
    fewest = std::min<uint64_t>(fewest, store_->discards - before);
  }
  EXPECT_EQ(fewest, 1u);
  for (uint64_t page = 1; page < 7; ++page)
    EXPECT_EQ(store_->bytes()[page * page_bytes()], std::byte{0});
  expect_zeros(1, 7);
  expect_kept(0, 1);
  expect_kept(7, 8);
}

TEST_P(DiscardOf, PagesThatAreAbsentInBetweenGoToo) {
  write_first(8);
  ASSERT_TRUE(region_.advise(3 * page_bytes(), 2 * page_bytes(), Advice::kDontNeed).ok());
  ASSERT_TRUE(region_.discard(page_bytes(), 6 * page_bytes()).ok());
  EXPECT_EQ(region_.metrics().counters.discarded, 6u);
  expect_zeros(1, 7);
  expect_kept(0, 1);
  expect_kept(7, 8);
}

TEST_P(DiscardOf, WhatIsBeforeAPageThatTheStoreRefusesIsGoneAndTheRestStays) {
  write_first(8);
  store_->error_offset = 4 * page_bytes();
  store_->discard_error = EIO;
  EXPECT_EQ(region_.discard(2 * page_bytes(), 5 * page_bytes()).code(), EIO);
  expect_zeros(2, 4);
  expect_kept(0, 2);
  expect_kept(4, 8);
  // As before: written bytes are written back. Unwritten ones, too, since the store may have lost
  // them.
  evict_all(region_);
  expect_kept(4, 8);
}

// As nobody else touches them they are one call of the store for each stretch of 512 pages.
TEST_P(DiscardOf, PagesThatAreInTheStoreOnlyGoManyAtATime) {
  const uint64_t pages = data_bytes() / page_bytes(), before = store_->discards;
  ASSERT_TRUE(region_.discard(0, pages * page_bytes()).ok());
  EXPECT_LE(store_->discards - before, 2 + data_bytes() / (8 << 20) + pages / 512);
  EXPECT_EQ(region_.metrics().counters.discarded, pages);
  expect_zeros(0, pages);
}

TEST_P(DiscardOf, PagesInTheStoreThatCannotGoStayUsable) {
  const uint64_t pages = data_bytes() / page_bytes();
  store_->discard_error = EIO;
  const Status refused = region_.discard(0, pages * page_bytes());
  EXPECT_EQ(refused.code(), EIO);
  EXPECT_THAT(refused.message(), testing::HasSubstr("they may be zeros now"));
  store_->discard_error = 0;
  for (uint64_t page = 0; page < pages; ++page)
    EXPECT_EQ(page_at(page)[0], byte_at(page * page_bytes())) << page;
  write_first(pages);
  ASSERT_TRUE(region_.flush().ok());
  expect_kept(0, pages);
}

// A store over a network may have discarded the range although its answer was lost.
TEST_P(DiscardOf, ARefusalThatWasCarriedOutChangesNothing) {
  write_first(8);
  ASSERT_TRUE(region_.flush().ok());
  store_->while_discarding = [&](uint64_t, uint64_t) {
    std::memset(store_->bytes().data(), 0, 8 * page_bytes());
    store_->discard_error = EIO;
  };
  EXPECT_EQ(region_.discard(2 * page_bytes(), 5 * page_bytes()).code(), EIO);
  evict_all(region_);
  expect_kept(2, 7);
}

TEST_P(DiscardOf, WhatIsBeforeAPinnedPageIsGoneAndTheRestStays) {
  write_first(8);
  ASSERT_TRUE(region_.pin(5 * page_bytes(), 1).ok());
  EXPECT_EQ(region_.discard(2 * page_bytes(), 6 * page_bytes()).code(), EBUSY);
  expect_zeros(2, 5);
  expect_kept(5, 8);
  ASSERT_TRUE(region_.unpin(5 * page_bytes(), 1).ok());
  ASSERT_TRUE(region_.discard(2 * page_bytes(), 6 * page_bytes()).ok());
  expect_zeros(2, 8);
}

// Readers that never pause could otherwise keep a page forever, because each rescue delays the
// discard. When pages are discarded one by one, pages whose turn has not come may be rescued.
TEST_P(DiscardOf, ATouchMeanwhileWaits) {
  std::atomic<bool> is_over{false};
  uint64_t rescued = 0, whole = 0;
  const auto rescues = [&] { return region_.metrics().counters.rescues; };
  store_->while_discarding = [&](uint64_t, uint64_t size_bytes) {
    if (size_bytes != 8 * page_bytes()) return;
    ++whole;
    const uint64_t before = rescues();
    for (int i = 0; i < 50; ++i) std::this_thread::yield();
    rescued += rescues() - before;
  };
  std::vector<std::thread> readers;
  for (uint64_t t = 0; t < 3; ++t)
    readers.emplace_back([&, t] {
      for (uint64_t i = t; !is_over; ++i)
        static_cast<void>(
            __atomic_load_n(reinterpret_cast<uint8_t*>(page_at(i % 8)), __ATOMIC_RELAXED));
    });
  for (int i = 0; i < 5 || whole == 0; ++i) {
    write_first(8);
    EXPECT_TRUE(region_.discard(0, 8 * page_bytes()).ok());
  }
  is_over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(rescued, 0u);
}

// Reads during the call return the old bytes or zeros; after the call, zeros.
TEST_P(DiscardOf, ReadersOfWhatGoesSeeTheOldOrZeros) {
  constexpr uint64_t kPages = 12;
  std::atomic<uint64_t> round{1}, wrong{0}, reads{0};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> readers;
  const auto word_of = [&](uint64_t page) { return reinterpret_cast<uint64_t*>(page_at(page)); };
  for (uint64_t page = 0; page < kPages; ++page)
    __atomic_store_n(word_of(page), 1, __ATOMIC_RELAXED);
  for (uint64_t t = 0; t < 3; ++t)
    readers.emplace_back([&, t] {
      for (uint64_t i = t; !is_over; ++i, ++reads) {
        const uint64_t before = round;
        const uint64_t seen = __atomic_load_n(word_of(i % kPages), __ATOMIC_RELAXED);
        // A round is announced before it is written to all pages, so a page may be one round
        // behind.
        wrong += seen != 0 && (seen + 1 < before || seen > round);
      }
    });
  for (int i = 0; i < 40; ++i) {
    for (const uint64_t until = reads + 50; reads < until;) std::this_thread::yield();
    const Status s = region_.discard(0, kPages * page_bytes());
    EXPECT_TRUE(s.ok()) << s.message();
    for (uint64_t page = 0; page < kPages; ++page)
      wrong += __atomic_load_n(word_of(page), __ATOMIC_RELAXED) != 0;
    ++round;
    for (uint64_t page = 0; page < kPages; ++page)
      __atomic_store_n(word_of(page), round, __ATOMIC_RELAXED);
  }
  is_over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace outcore
