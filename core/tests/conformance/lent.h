// OnLentAddresses: a region over addresses that the test lends, as `outcore run` does with those of
// a program, threads that add to its words, and what its store must have.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/os/address_space.h"
#include "core/runtime/mapper.h"
#include "core/runtime/region_changes.h"
#include "core/runtime/runtime_impl.h"
#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore::scene {

class OnLentAddresses : public OnMechanism {
 protected:
  static constexpr uint64_t kThreads = 3;
  // Every 4 KiB contains a word that threads add to; the rest is the pattern.
  static constexpr uint64_t kWordAt = 1024;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OnMechanism::SetUp());
    if (IsSkipped()) return;
    impl_ = Runtime::Impl::start(options()).value();
    store_ = std::make_shared<FaultyStore>(pattern(data_bytes()));
    added_ = std::vector<std::atomic<uint64_t>>(data_bytes() / 4096);
    addresses_ = os::reserve_addresses(data_bytes(), page_bytes()).value();
  }
  void TearDown() override {
    if (impl_ == nullptr) return;
    stop_threads();
    for (auto& region : regions_) EXPECT_TRUE(impl_->mapper->unmap(*region, false).ok());
    regions_.clear();
    os::release_addresses(addresses_, data_bytes());
  }

  uint64_t pages() const { return data_bytes() / page_bytes(); }
  // Maps the whole store at the lent addresses; shows its first `shown_bytes`.
  Region::Impl& take(uint64_t shown_bytes, std::shared_ptr<Store> store = nullptr,
                     Access access = Access::kReadWrite) {
    MapOptions options = map_options(access);
    options.size_bytes = shown_bytes;
    options.advice = Advice::kRandom;
    const Runtime::Impl::Lent lent{addresses_, data_bytes(), data_bytes()};
    const std::shared_ptr<Store> shown = store != nullptr ? std::move(store) : store_;
    auto region = impl_->mapper->map(shown, shown->uri(), options, &lent);
    EXPECT_TRUE(region.ok()) << region.message();
    regions_.push_back(std::move(region).value());
    return *regions_.back();
  }
  // Removes the bytes [from, to); the part behind them, if any, becomes a region of its own.
  Status cut(Region::Impl& region, uint64_t from, uint64_t to) {
    std::unique_ptr<Region::Impl> right;
    std::byte* const start = region.view->address;
    const uint64_t offset = region.view->offset;
    const Status s = impl_->changes->cut(region, from, to, &right, [&] {
      if (from == to) return;
      // As a program does when it maps something else there.
      ASSERT_EQ(::mmap(start + from, to - from, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0),
                start + from);
      expect_stored(offset + from, offset + to);
    });
    if (right != nullptr) regions_.push_back(std::move(right));
    return s;
  }
  // REQUIRES: no thread adds to these bytes.
  void expect_stored(uint64_t from, uint64_t to) {
    for (uint64_t at = from; at < to; at += 4096) {
      uint64_t word = 0, before = 0;
      const Bytes expected = pattern(8, at + kWordAt);
      std::memcpy(&before, expected.data(), sizeof before);
      std::memcpy(&word, store_->bytes().data() + at + kWordAt, sizeof word);
      ASSERT_EQ(word - before, added_[at / 4096].load()) << "at " << at;
      ASSERT_EQ(store_->bytes()[at], byte_at(at)) << "at " << at;
    }
  }
  void add(uint64_t at) {
    auto* word = reinterpret_cast<uint64_t*>(addresses_ + at / 4096 * 4096 + kWordAt);
    added_[at / 4096].fetch_add(1, std::memory_order_relaxed);
    __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
    const auto* first = reinterpret_cast<const uint8_t*>(addresses_ + at / 4096 * 4096);
    wrong_ += std::byte{__atomic_load_n(first, __ATOMIC_RELAXED)} != byte_at(at / 4096 * 4096);
  }
  // Starts threads that add to any bytes for which `is_theirs`, until stop_threads().
  template <typename F>
  void start_threads(const F& is_theirs) {
    is_over_ = false;
    for (uint64_t t = 0; t < kThreads; ++t)
      threads_.emplace_back([this, t, is_theirs] {
        for (uint64_t x = (t + 1) * 0x9E3779B97F4A7C15ull; !is_over_;) {
          x ^= x << 13, x ^= x >> 7, x ^= x << 17;
          if (const uint64_t at = x % data_bytes(); is_theirs(at)) add(at), ++touches_;
        }
      });
  }
  // Waits until every thread has touched many bytes since the call.
  void let_them_touch(uint64_t touches = 300) {
    for (const uint64_t until = touches_ + touches; touches_ < until;) std::this_thread::yield();
  }
  void stop_threads() {
    is_over_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    EXPECT_EQ(wrong_, 0u);
  }

  std::shared_ptr<Runtime::Impl> impl_;
  std::shared_ptr<FaultyStore> store_;
  std::byte* addresses_ = nullptr;
  std::vector<std::unique_ptr<Region::Impl>> regions_;
  std::vector<std::atomic<uint64_t>> added_;
  std::vector<std::thread> threads_;
  std::atomic<bool> is_over_{false};
  std::atomic<uint64_t> touches_{0}, wrong_{0};
};

}  // namespace outcore::scene
