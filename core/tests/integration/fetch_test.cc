// How much a miss brings in: read from what the store is asked for, and by its bytes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "core/tests/conformance/mechanism.h"
#include "core/tests/sim/random.h"
#include "tests/folder.h"

namespace outcore {
namespace {

using namespace scene;

constexpr uint64_t kPageBytes = 4096;

// The numbers below `count`, in an order that the seed gives.
std::vector<uint64_t> shuffled(uint64_t count, uint64_t seed) {
  std::vector<uint64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  sim::Random random(seed);
  for (uint64_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

class Fetches : public testing::TestWithParam<Delivery> {
 protected:
  RuntimeOptions options(uint64_t budget_bytes) const {
    RuntimeOptions o = options_with(budget_bytes);
    o.delivery = GetParam();
    return o;
  }
  // Skips the test where the delivery cannot be had.
  void start(const RuntimeOptions& o) {
    runtime_.emplace(Runtime::start(o).value());
    Result<Region> probe = runtime_->map("memory:", {.size_bytes = kPageBytes, .may_create = true});
    if (!probe.ok() && probe.code() == EPERM) GTEST_SKIP() << probe.message();
  }
  Region map(const std::string& path, const MapOptions& o = {}) {
    Result<Region> region = runtime_->map(path, o);
    EXPECT_TRUE(region.ok()) << region.message();
    return std::move(region).value();
  }
  // Pages that do not begin with the bytes that they should.
  static uint64_t read(const Region& region, std::span<const uint64_t> pages) {
    uint64_t wrong = 0;
    for (const uint64_t page : pages)
      wrong += *static_cast<const volatile std::byte*>(region.data() + page * kPageBytes) !=
               byte_at(page * kPageBytes);
    return wrong;
  }
  uint64_t fills() const {
    const Counters counters = runtime_->metrics().counters;
    return counters.fills + counters.prefetch_fills;
  }

  Folder folder_;
  std::optional<Runtime> runtime_;
};

TEST_P(Fetches, DataThatFitComeInByFewTransfers) {
  constexpr uint64_t kPages = 8192;
  write_file(folder_ / "data", pattern(kPages * kPageBytes));
  ASSERT_NO_FATAL_FAILURE(start(options(2 * kPages * kPageBytes)));
  if (IsSkipped()) return;
  const Region region = map(folder_ / "data");
  EXPECT_EQ(read(region, shuffled(kPages, 1)), 0u);
  EXPECT_EQ(first_difference(region.data(), kPages * kPageBytes), kPages * kPageBytes);
  const Metrics seen = runtime_->metrics();
  EXPECT_EQ(fills(), kPages);
  EXPECT_LT(seen.counters.read_requests, kPages / 8);
  EXPECT_FALSE(region.metrics().fetches.to_text(kPageBytes).empty());
}

TEST_P(Fetches, PagesComeInAloneWhereTheUserWantsIt) {
  constexpr uint64_t kPages = 2048;
  write_file(folder_ / "data", pattern(kPages * kPageBytes));
  RuntimeOptions page = options(2 * kPages * kPageBytes), none = page;
  page.fetch = Fetch::kPage;
  none.readahead_bytes = 0;
  for (const RuntimeOptions& o : {page, none, options(2 * kPages * kPageBytes)}) {
    ASSERT_NO_FATAL_FAILURE(start(o));
    if (IsSkipped()) return;
    const bool is_by_advice = !o.fetch && !o.readahead_bytes;
    MapOptions asked;
    if (is_by_advice) asked.advice = Advice::kRandom;
    const Region region = map(folder_ / "data", asked);
    std::vector<uint64_t> few = shuffled(kPages, 2);
    few.resize(kPages / 16);
    EXPECT_EQ(read(region, few), 0u);
    // By messages a reader may go on before its page is counted.
    for (int i = 0; i < 100'000 && runtime_->metrics().counters.fills < few.size(); ++i)
      std::this_thread::yield();
    EXPECT_EQ(runtime_->metrics().counters.fills, few.size());
    // Some pages may lie in a row by chance.
    EXPECT_LE(runtime_->metrics().counters.prefetch_fills, o.fetch ? 16u : 0u);
  }
}

TEST_P(Fetches, SinglePagesOfMuchDataAreReadAloneOnceMemoryIsFull) {
  constexpr uint64_t kPages = 32768, kRoomPages = 2048;
  write_file(folder_ / "data", Bytes(kPages * kPageBytes));
  ASSERT_NO_FATAL_FAILURE(start(options(kRoomPages * kPageBytes)));
  if (IsSkipped()) return;
  const Region region = map(folder_ / "data");
  const std::vector<uint64_t> order = shuffled(kPages, 3);
  const std::span<const uint64_t> all(order);
  const auto touch = [&](std::span<const uint64_t> pages) {
    for (const uint64_t page : pages)
      static_cast<void>(*static_cast<const volatile std::byte*>(region.data() + page * kPageBytes));
  };
  touch(all.first(8192));
  const Metrics before = runtime_->metrics();
  touch(all.subspan(8192));
  const Metrics after = runtime_->metrics();
  const uint64_t asked = after.counters.fills - before.counters.fills;
  const uint64_t along = after.counters.prefetch_fills - before.counters.prefetch_fills;
  EXPECT_GT(asked, 20'000u);
  EXPECT_LT(along, asked / 20);
  EXPECT_LE(after.gauges.used_bytes_max, kRoomPages * kPageBytes);
}

TEST_P(Fetches, WhatIsWrittenIsStoredWhateverCameAlong) {
  constexpr uint64_t kPages = 4096;
  write_file(folder_ / "data", pattern(kPages * kPageBytes));
  ASSERT_NO_FATAL_FAILURE(start(options(kPages * kPageBytes / 4)));
  if (IsSkipped()) return;
  Bytes expected = pattern(kPages * kPageBytes);
  {
    Region region = map(folder_ / "data", {.access = Access::kReadWrite});
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        for (const uint64_t page : shuffled(kPages, 4))
          if (page % 4 == t && page % 3 == 0)
            region.data()[page * kPageBytes + 77] = std::byte{0x5A};
      });
    for (std::thread& thread : threads) thread.join();
    for (uint64_t page = 0; page < kPages; page += 3)
      expected[page * kPageBytes + 77] = std::byte{0x5A};
    ASSERT_TRUE(region.sync().ok());
  }
  EXPECT_EQ(read_file(folder_ / "data"), expected);
}

// A device that takes long for each transfer, whatever its size. It counts them. One of its pages
// may be unreadable.
class FarDevice : public Store {
 public:
  struct Habits {
    long latency_ns = 0;
    uint64_t bad_page = UINT64_MAX;
    bool is_fault_safe = true;
  };
  FarDevice(uint64_t size_bytes, const Habits& habits) : size_bytes_(size_bytes), habits_(habits) {}
  uint64_t size_bytes() const override { return size_bytes_; }
  std::string uri() const override { return "far-device:"; }
  StoreTraits traits() const override {
    StoreTraits traits;
    traits.is_fault_safe = habits_.is_fault_safe;
    traits.can_read_while_written = true;
    return traits;
  }
  int read(uint64_t offset, std::span<std::byte> into) override {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(habits_.latency_ns);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
    for (uint64_t i = 0; i < into.size(); i += kPageBytes) into[i] = byte_at(offset + i);
    reads_ += 1;
    const uint64_t bad = habits_.bad_page;
    return bad >= offset / kPageBytes && bad < (offset + into.size() + kPageBytes - 1) / kPageBytes
               ? -EIO
               : 0;
  }
  int write(uint64_t, std::span<const std::byte>) override { return -EROFS; }
  uint64_t reads() const { return reads_; }

 private:
  const uint64_t size_bytes_;
  const Habits habits_;
  std::atomic<uint64_t> reads_{0};
};

TEST_P(Fetches, APageThatCannotBeReadHarmsNoneBesideIt) {
  constexpr uint64_t kPages = 1024, kBad = 517;
  for (const bool is_fault_safe : {true, false}) {
    for (const OnError on_error : {OnError::kSignal, OnError::kZeroFill}) {
      RuntimeOptions o = options(2 * kPages * kPageBytes);
      o.wait_ms_max = 3'600'000;  // who waited for it would never come back
      ASSERT_NO_FATAL_FAILURE(start(o));
      if (IsSkipped()) return;
      const FarDevice::Habits habits{0, kBad, is_fault_safe};
      const auto device = std::make_shared<FarDevice>(kPages * kPageBytes, habits);
      MapOptions asked;
      asked.on_error = on_error;
      const Region region = runtime_->map(device, asked).value();
      for (const uint64_t page : {kBad - 1, kBad + 1, kBad - 300}) {
        const scene::Touch touch = read_of(region.data() + page * kPageBytes);
        ASSERT_EQ(touch.signal, 0) << page;
        EXPECT_EQ(region.data()[page * kPageBytes], byte_at(page * kPageBytes));
      }
      const scene::Touch touch = read_of(region.data() + kBad * kPageBytes);
      EXPECT_EQ(touch.signal, on_error == OnError::kSignal ? SIGBUS : 0);
      if (on_error == OnError::kZeroFill) {
        EXPECT_EQ(region.data()[kBad * kPageBytes], std::byte{0});
      }
    }
  }
}

TEST_P(Fetches, DataThatAreReadInRunsComeInByRuns) {
  constexpr uint64_t kPages = 8192, kRoomPages = 1024, kRunPages = 16;
  ASSERT_NO_FATAL_FAILURE(start(options(kRoomPages * kPageBytes)));
  if (IsSkipped()) return;
  const auto device = std::make_shared<FarDevice>(kPages * kPageBytes, FarDevice::Habits{300'000});
  const Region region = runtime_->map(device, MapOptions{}).value();
  const auto read_runs = [&](uint64_t seed) {
    std::vector<uint64_t> pages;
    for (const uint64_t run : shuffled(kPages / kRunPages, seed))
      for (uint64_t i = 0; i < kRunPages; ++i)  // in no order that a stream could have
        pages.push_back(run * kRunPages + (i * 7 + 3) % kRunPages);
    EXPECT_EQ(read(region, pages), 0u);
  };
  read_runs(5);
  const uint64_t before = device->reads();
  read_runs(6);
  EXPECT_LT(device->reads() - before, kPages / 4) << region.metrics().fetches.to_text(kPageBytes);
}

INSTANTIATE_TEST_SUITE_P(Deliveries, Fetches,
                         testing::Values(Delivery::kInThread, Delivery::kMessages,
                                         Delivery::kMprotect),
                         [](const auto& of) {
                           return std::string(of.param == Delivery::kInThread   ? "InThread"
                                              : of.param == Delivery::kMessages ? "Messages"
                                                                                : "Mprotect");
                         });

}  // namespace
}  // namespace outcore
