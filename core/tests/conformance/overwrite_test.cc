// Overwrite: bytes of a store change by another hand, under threads that read them.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "core/tests/conformance/lent.h"

namespace outcore {
namespace {

using namespace scene;

class OverwriteOf : public OnLentAddresses {};
OUTCORE_ON_ALL_MECHANISMS(OverwriteOf);

// Next to nothing leaves memory for it: pages that are there are read again, or a part of them.
TEST_P(OverwriteOf, BytesThatAreOverwrittenInTheStoreAreReadAgain) {
  constexpr uint64_t kWords = 4, kStep = 3000, kVersions = 200;
  const uint64_t from = 2 * page_bytes() + 100, words_end = from + (kWords - 1) * kStep + 4;
  std::atomic<uint64_t> version{0};
  const auto put = [&](uint32_t v) {
    for (uint64_t i = 0; i < kWords; ++i)
      std::memcpy(store_->bytes().data() + from + i * kStep, &v, sizeof v);
  };
  put(0);
  Region::Impl& region = take(data_bytes(), nullptr, Access::kReadOnly);
  std::atomic<uint64_t> stale{0}, wrong{0}, reads{0};
  std::vector<std::thread> readers;
  for (uint64_t t = 0; t < kThreads; ++t)
    readers.emplace_back([&, t] {
      for (uint64_t i = t; !is_over_; ++i) {
        const uint64_t least = version, at = from + i % kWords * kStep;
        const auto* word = reinterpret_cast<const uint32_t*>(addresses_ + at);
        const uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
        stale += seen < least || seen > kVersions;
        const uint64_t other = (at / 4096 + i % 3) * 4096 + 4088;
        const auto* byte = reinterpret_cast<const uint8_t*>(addresses_ + other);
        wrong += std::byte{__atomic_load_n(byte, __ATOMIC_RELAXED)} != byte_at(other);
        ++reads;
      }
    });
  for (uint32_t v = 1; v < kVersions; ++v) {
    for (const uint64_t until = reads + 20; reads < until;) std::this_thread::yield();
    const Status s =
        impl_->changes->overwrite(*region.cache, from, words_end - from, [&] { put(v); });
    ASSERT_TRUE(s.ok()) << s.message();
    version = v;
    if (v == kVersions / 2) {
      const auto evictions = [&] { return region.cache->counters.sum().evictions; };
      EXPECT_LT(evictions(), kVersions / 4);
      // A page that a reader is just bringing in leaves. One that a reader touches on its way out
      // may stay: it is asked again.
      for (int tries = 0; evictions() == 0 && tries < 10'000; ++tries)
        ASSERT_TRUE(impl_->engine->evict(*region.cache, 0, pages()).ok());
      EXPECT_NE(evictions(), 0u);
    }
  }
  is_over_ = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(stale, 0u);
  EXPECT_EQ(wrong, 0u);
}

// However long the change takes, others find memory.
TEST_P(OverwriteOf, PagesThatAreHeldLeaveRoomForOthers) {
  Region::Impl& region = take(data_bytes(), nullptr, Access::kReadOnly);
  const auto wrong_in = [&](uint64_t from, uint64_t to) {
    uint64_t wrong = 0;
    for (uint64_t at = from; at < to; at += 4096) wrong += addresses_[at] != byte_at(at) ? 1 : 0;
    return wrong;
  };
  const uint64_t half = data_bytes() / 2;
  EXPECT_EQ(wrong_in(0, half), 0u);
  const Status s = impl_->changes->overwrite(*region.cache, 0, half, [&] {
    uint64_t held_bytes = 0;
    for (uint64_t page = 0; page < half / page_bytes(); ++page)
      if (region.cache->words[page].load().state() == region::PageState::kBusy)
        held_bytes += page_bytes();
    EXPECT_LE(held_bytes, std::max(impl_->engine->pager().budget.limit() / 16, page_bytes()));
    EXPECT_EQ(wrong_in(half, data_bytes()), 0u);
  });
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(wrong_in(0, half), 0u);
}

// Written pages are stored first, and leave.
TEST_P(OverwriteOf, BytesThatAreOverwrittenBesideWrittenOnesKeepThem) {
  Region::Impl& region = take(data_bytes());
  const uint64_t at = page_bytes() + 8;
  for (uint64_t i = 0; i < 3; ++i) add(page_bytes() * i);
  const uint64_t value = 77;
  const Status s = impl_->changes->overwrite(*region.cache, at, sizeof value, [&] {
    std::memcpy(store_->bytes().data() + at, &value, sizeof value);
  });
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(*reinterpret_cast<const uint64_t*>(addresses_ + at), value);
  add(page_bytes());
  ASSERT_TRUE(impl_->mapper->unmap(region, false).ok());
  regions_.clear();
  expect_stored(0, data_bytes());
}

}  // namespace
}  // namespace outcore
