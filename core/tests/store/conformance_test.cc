// What every store must do (outcore/store.h), with a plain vector as the oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "core/tests/store/store_case.h"

namespace outcore::store_test {
namespace {

class StoreConformance : public testing::TestWithParam<StoreCase> {
 protected:
  std::shared_ptr<Store> make(uint64_t size_bytes) {
    auto store = GetParam().make(folder_, size_bytes);
    EXPECT_TRUE(store.ok()) << store.message();
    EXPECT_EQ(store.value()->size_bytes(), size_bytes);
    return store.value();
  }
  static Bytes all_of(Store& store) {
    Bytes bytes(store.size_bytes(), std::byte{0xee});
    EXPECT_EQ(store.read(0, bytes), 0);
    return bytes;
  }
  Folder folder_;
};

constexpr uint64_t kOddSize = 300'007;  // a multiple of nothing

TEST_P(StoreConformance, ANewStoreReadsZero) {
  auto store = make(kOddSize);
  EXPECT_EQ(all_of(*store), Bytes(kOddSize));
}

TEST_P(StoreConformance, WhatWasWrittenIsReadAtAnyOffset) {
  auto store = make(kOddSize);
  Bytes oracle(kOddSize);
  std::mt19937_64 random(1);
  for (uint64_t turn = 0; turn < 300; ++turn) {
    const size_t offset = random() % kOddSize;
    const size_t size = std::min<size_t>(random() % 40'000, kOddSize - offset);
    if (turn % 2 == 0) {
      const Bytes bytes = random_bytes(size, turn);
      ASSERT_EQ(store->write(offset, bytes), 0);
      std::copy(bytes.begin(), bytes.end(), oracle.begin() + static_cast<ptrdiff_t>(offset));
    } else {
      Bytes bytes(size);
      ASSERT_EQ(store->read(offset, bytes), 0);
      ASSERT_TRUE(
          std::equal(bytes.begin(), bytes.end(), oracle.begin() + static_cast<ptrdiff_t>(offset)));
    }
  }
  EXPECT_EQ(all_of(*store), oracle);
}

TEST_P(StoreConformance, AlignedAndUnalignedTransfersSeeTheSameBytes) {
  auto store = make(kOddSize);
  Bytes oracle(kOddSize);
  AlignedBytes buffer(64 << 10);
  std::mt19937_64 random(2);
  for (uint64_t turn = 0; turn < 200; ++turn) {
    const uint64_t offset = random() % (kOddSize / 4096) * 4096;
    const size_t size = std::min<uint64_t>((random() % 16 + 1) * 4096, kOddSize - offset);
    const Bytes bytes = random_bytes(size, turn);
    std::copy(bytes.begin(), bytes.end(), buffer.data());
    ASSERT_EQ(store->write(offset, buffer.span().first(size)), 0);
    std::copy(bytes.begin(), bytes.end(), oracle.begin() + static_cast<ptrdiff_t>(offset));

    const uint64_t odd = random() % kOddSize;
    const Bytes few = random_bytes(std::min<uint64_t>(random() % 5000, kOddSize - odd), turn);
    ASSERT_EQ(store->write(odd, few), 0);
    std::copy(few.begin(), few.end(), oracle.begin() + static_cast<ptrdiff_t>(odd));

    ASSERT_EQ(store->read(offset, buffer.span().first(size)), 0);
    ASSERT_EQ(std::memcmp(buffer.data(), &oracle[offset], size), 0);
  }
  EXPECT_EQ(all_of(*store), oracle);
}

TEST_P(StoreConformance, ABatchDoesWhatSingleTransfersDo) {
  auto store = make(kOddSize);
  Bytes oracle = random_bytes(kOddSize, 3);
  AlignedBytes buffer(kOddSize);
  std::copy(oracle.begin(), oracle.end(), buffer.data());
  store->register_buffer(buffer.span());
  // More requests than a ring holds, of every length around the page.
  std::vector<StoreRequest> writes;
  for (uint64_t at = 0, turn = 0; at < kOddSize; ++turn) {
    const size_t size = std::min<uint64_t>(turn % 3 == 0 ? 4096 : 511 + turn % 7, kOddSize - at);
    writes.push_back({at, buffer.data() + at, size, true, 77});
    at += size;
  }
  ASSERT_GT(writes.size(), 128u);
  store->transfer(writes);
  for (const StoreRequest& r : writes) ASSERT_EQ(r.result, 0);
  EXPECT_EQ(all_of(*store), oracle);

  Bytes read_back(kOddSize);
  std::vector<StoreRequest> reads = writes;
  for (StoreRequest& r : reads)
    r = {r.offset, read_back.data() + r.offset, r.size_bytes, false, 77};
  std::shuffle(reads.begin(), reads.end(), std::mt19937_64(4));
  store->transfer(reads);
  for (const StoreRequest& r : reads) ASSERT_EQ(r.result, 0);
  EXPECT_EQ(read_back, oracle);
}

TEST_P(StoreConformance, ABatchOfPagesReachesTheUnevenEnd) {
  auto store = make(kOddSize);
  const Bytes oracle = random_bytes(kOddSize, 5);
  AlignedBytes buffer(kOddSize);
  std::copy(oracle.begin(), oracle.end(), buffer.data());
  for (const bool is_write : {true, false}) {
    std::vector<StoreRequest> batch;
    for (uint64_t at = 0; at < kOddSize; at += 16 << 10) {
      const size_t size = std::min<uint64_t>(16 << 10, kOddSize - at);
      batch.push_back({at, buffer.data() + at, size, is_write, 77});
    }
    store->transfer(batch);
    for (const StoreRequest& r : batch) ASSERT_EQ(r.result, 0);
    if (is_write) std::fill_n(buffer.data(), kOddSize, std::byte{0});
  }
  EXPECT_TRUE(std::equal(oracle.begin(), oracle.end(), buffer.data()));
}

TEST_P(StoreConformance, AMixedBatchServesReadsAndWrites) {
  auto store = make(1 << 20);
  const Bytes first = random_bytes(512 << 10, 6);
  ASSERT_EQ(store->write(0, first), 0);
  AlignedBytes buffer(1 << 20);
  const Bytes second = random_bytes(512 << 10, 7);
  std::copy(second.begin(), second.end(), buffer.data() + (512 << 10));
  std::vector<StoreRequest> batch;
  for (size_t at = 0; at < 512 << 10; at += 4096) {
    batch.push_back({at, buffer.data() + at, 4096, false, 77});
    batch.push_back({at + (512 << 10), buffer.data() + at + (512 << 10), 4096, true, 77});
  }
  store->transfer(batch);
  for (const StoreRequest& r : batch) ASSERT_EQ(r.result, 0);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), buffer.data()));
  Bytes upper(512 << 10);
  ASSERT_EQ(store->read(512 << 10, upper), 0);
  EXPECT_EQ(upper, second);
}

TEST_P(StoreConformance, AnEmptyStoreTakesEmptyTransfers) {
  auto store = make(0);
  EXPECT_EQ(store->read(0, {}), 0);
  EXPECT_EQ(store->write(0, {}), 0);
  EXPECT_EQ(store->discard(0, 0), 0);
  EXPECT_EQ(store->sync(), 0);
  store->transfer({});
  StoreRequest nothing{0, nullptr, 0, false, 77};
  store->transfer({&nothing, 1});
  EXPECT_EQ(nothing.result, 0);
}

TEST_P(StoreConformance, ThreadsOnDisjointRangesDoNotDisturbEachOther) {
  constexpr size_t kThreads = 4;
  constexpr size_t kShare = 96 * 1024;
  auto store = make(kThreads * kShare + 5);
  std::vector<std::thread> threads;
  std::atomic<int> wrong_count{0};
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      AlignedBytes buffer(kShare);
      for (uint64_t turn = 0; turn < 12; ++turn) {
        const Bytes bytes = random_bytes(kShare, t * 100 + turn);
        std::copy(bytes.begin(), bytes.end(), buffer.data());
        std::vector<StoreRequest> batch;
        for (size_t at = 0; at < kShare; at += 4096)
          batch.push_back({t * kShare + at, buffer.data() + at, 4096, true, 77});
        store->transfer(batch);
        for (const StoreRequest& r : batch) wrong_count += r.result != 0;
        Bytes back(kShare);
        wrong_count += store->read(t * kShare, back) != 0 || back != bytes;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong_count, 0);
}

TEST_P(StoreConformance, ADiscardedRangeReadsZeroAndItsNeighboursStay) {
  auto store = make(kOddSize);
  Bytes oracle = random_bytes(kOddSize, 8);
  ASSERT_EQ(store->write(0, oracle), 0);
  const std::pair<uint64_t, uint64_t> ranges[] = {
      {8192, 16384}, {50'001, 70'003}, {5, 6}, {290'000, 10'007}};
  for (const auto& [offset, size] : ranges) {
    ASSERT_EQ(store->discard(offset, size), 0);
    std::fill_n(oracle.begin() + static_cast<ptrdiff_t>(offset), size, std::byte{0});
    EXPECT_EQ(all_of(*store), oracle);
  }
  ASSERT_EQ(store->discard(0, kOddSize), 0);
  EXPECT_EQ(all_of(*store), Bytes(kOddSize));
  const Bytes again = random_bytes(5000, 9);
  ASSERT_EQ(store->write(60'000, again), 0);
  Bytes back(5000);
  ASSERT_EQ(store->read(60'000, back), 0);
  EXPECT_EQ(back, again);
}

TEST_P(StoreConformance, AHoleIsOnlyWhatReadsZero) {
  auto store = make(4 << 20);
  Bytes oracle(4 << 20);
  const Bytes zeros(4096);
  std::mt19937_64 random(10);
  for (int turn = 0; turn < 40; ++turn) {
    const uint64_t offset = random() % ((4 << 20) - 5000);
    const Bytes bytes = random_bytes(1 + random() % 5000, random());
    ASSERT_EQ(store->write(offset, bytes), 0);
    std::copy(bytes.begin(), bytes.end(), oracle.begin() + static_cast<ptrdiff_t>(offset));
    for (uint64_t at = 0; at < 4 << 20; at += 4096) {
      const bool is_zero = std::memcmp(&oracle[at], zeros.data(), zeros.size()) == 0;
      ASSERT_TRUE(is_zero || !store->is_hole(at, 4096)) << at;
    }
  }
}

TEST_P(StoreConformance, GrowingKeepsBytesAndNewOnesReadZero) {
  auto store = make(10'001);
  if (!GetParam().can_resize) {
    EXPECT_EQ(store->resize(20'000), -ENOTSUP);
    return;
  }
  Bytes oracle = random_bytes(10'001, 11);
  ASSERT_EQ(store->write(0, oracle), 0);
  ASSERT_EQ(store->resize(123'457), 0);
  EXPECT_EQ(store->size_bytes(), 123'457u);
  oracle.resize(123'457);
  EXPECT_EQ(all_of(*store), oracle);
  const Bytes tail = random_bytes(3000, 12);
  ASSERT_EQ(store->write(120'457, tail), 0);
  ASSERT_EQ(store->resize(7), 0);
  ASSERT_EQ(store->resize(123'457), 0);
  std::fill(oracle.begin() + 7, oracle.end(), std::byte{0});
  EXPECT_EQ(all_of(*store), oracle);
  EXPECT_EQ(store->sync(), 0);
}

TEST_P(StoreConformance, SyncSucceedsAfterWritesAndTwice) {
  auto store = make(kOddSize);
  ASSERT_EQ(store->write(1, random_bytes(200'000, 13)), 0);
  EXPECT_EQ(store->sync(), 0);
  EXPECT_EQ(store->sync(), 0);
}

TEST_P(StoreConformance, AStoreSaysWhatItIs) {
  auto store = make(4096);
  EXPECT_FALSE(store->uri().empty());
  EXPECT_GE(store->traits().alignment_bytes, 1u);
}

INSTANTIATE_TEST_SUITE_P(EveryStore, StoreConformance, testing::ValuesIn(all_cases()),
                         [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace outcore::store_test
