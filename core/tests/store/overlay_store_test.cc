#include "core/store/overlay_store.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "core/tests/store/store_case.h"

namespace outcore::store_test {
namespace {

std::shared_ptr<Store> memory(uint64_t size_bytes) {
  OpenOptions options;
  options.size_bytes = size_bytes;
  return open_store("memory:", options).value();
}

Bytes all_of(Store& store) {
  Bytes bytes(store.size_bytes());
  EXPECT_EQ(store.read(0, bytes), 0);
  return bytes;
}

// Every write stores half of its bytes and then fails: a failure that a real store has only by
// accident.
class FailingStore final : public Store {
 public:
  explicit FailingStore(std::shared_ptr<Store> under) : under_(std::move(under)) {}
  uint64_t size_bytes() const override { return under_->size_bytes(); }
  int read(uint64_t offset, std::span<std::byte> into) override {
    return under_->read(offset, into);
  }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    const int error = under_->write(offset, from.first(from.size() / 2));
    return error != 0 ? error : -ENOSPC;
  }
  std::string uri() const override { return "failing:"; }

 private:
  std::shared_ptr<Store> under_;
};

constexpr uint64_t kFirst = 8192;
constexpr uint64_t kSize = 40'000;
constexpr uint64_t kBaseSize = 100'001;

struct Overlaid {
  std::shared_ptr<Store> base = memory(kBaseSize);
  Bytes original = random_bytes(kBaseSize, 1);
  std::shared_ptr<Store> overlay;
  Overlaid() {
    EXPECT_EQ(base->write(0, original), 0);
    overlay = store::make_overlay(base, memory(kSize), kFirst, kSize);
  }
};

TEST(OverlayStore, ItShowsTheBaseUntilWritten) {
  Overlaid o;
  EXPECT_EQ(o.overlay->size_bytes(), kBaseSize);
  EXPECT_EQ(all_of(*o.overlay), o.original);
}

TEST(OverlayStore, WritesNeverReachTheBase) {
  Overlaid o;
  Bytes expected = o.original;
  for (const auto& [offset, size] :
       {std::pair{8192, 4096}, {16384, 8192}, {9000, 3}, {40'960, 7232}, {20'000, 9'000}}) {
    const Bytes bytes = random_bytes(static_cast<size_t>(size), static_cast<uint64_t>(offset));
    ASSERT_EQ(o.overlay->write(static_cast<uint64_t>(offset), bytes), 0);
    std::copy(bytes.begin(), bytes.end(), expected.begin() + offset);
    ASSERT_EQ(all_of(*o.overlay), expected);
  }
  EXPECT_EQ(all_of(*o.base), o.original);
}

TEST(OverlayStore, ABatchNeverReachesTheBase) {
  Overlaid o;
  Bytes expected = o.original;
  AlignedBytes buffer(kSize);
  std::vector<StoreRequest> batch;
  for (uint64_t at = 0; at < kSize; at += 8192) {
    const size_t size = std::min<uint64_t>(4096, kSize - at);
    const Bytes bytes = random_bytes(size, at);
    std::copy(bytes.begin(), bytes.end(), buffer.data() + at);
    std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<ptrdiff_t>(kFirst + at));
    batch.push_back({kFirst + at, buffer.data() + at, size, true, 77});
  }
  o.overlay->transfer(batch);
  for (const StoreRequest& r : batch) EXPECT_EQ(r.result, 0);
  EXPECT_EQ(all_of(*o.overlay), expected);
  EXPECT_EQ(all_of(*o.base), o.original);
}

TEST(OverlayStore, OutsideOfItsRangeItTakesNoWrites) {
  Overlaid o;
  const Bytes page(4096);
  EXPECT_EQ(o.overlay->write(0, page), -EACCES);
  EXPECT_EQ(o.overlay->write(kFirst + kSize - 4095, page), -EACCES);
  EXPECT_EQ(all_of(*o.overlay), o.original);
}

TEST(OverlayStore, PastTheEndOfTheBaseItReadsZero) {
  auto base = memory(5000);
  ASSERT_EQ(base->write(0, random_bytes(5000, 2)), 0);
  auto overlay = store::make_overlay(base, memory(20'000), 0, 20'000);
  EXPECT_EQ(overlay->size_bytes(), 20'000u);
  Bytes expected = all_of(*base);
  expected.resize(20'000);
  EXPECT_EQ(all_of(*overlay), expected);
  EXPECT_TRUE(overlay->is_hole(8192, 8192));
  EXPECT_FALSE(overlay->is_hole(0, 8192));
  const Bytes bytes = random_bytes(8192, 3);
  ASSERT_EQ(overlay->write(4096, bytes), 0);
  std::copy(bytes.begin(), bytes.end(), expected.begin() + 4096);
  EXPECT_EQ(all_of(*overlay), expected);
  EXPECT_FALSE(overlay->is_hole(8192, 8192));
}

TEST(OverlayStore, AFailedWriteStillShowsTheBase) {
  auto base = memory(kSize);
  const Bytes original = random_bytes(kSize, 4);
  ASSERT_EQ(base->write(0, original), 0);
  auto overlay = store::make_overlay(base, std::make_shared<FailingStore>(memory(kSize)), 0, kSize);
  Bytes page(4096);
  EXPECT_EQ(overlay->write(4096, page), -ENOSPC);
  EXPECT_EQ(overlay->write(9000, std::span(page).first(5)), -ENOSPC);
  StoreRequest request{16384, page.data(), 4096, true, 0};
  overlay->transfer({&request, 1});
  EXPECT_EQ(request.result, -ENOSPC);
  EXPECT_EQ(all_of(*overlay), original);
}

TEST(OverlayStore, DiscardedBytesReadZeroHereOnly) {
  Overlaid o;
  Bytes expected = o.original;
  ASSERT_EQ(o.overlay->discard(12'288, 8192), 0);
  std::fill_n(expected.begin() + 12'288, 8192, std::byte{0});
  EXPECT_EQ(all_of(*o.overlay), expected);
  EXPECT_EQ(all_of(*o.base), o.original);
}

TEST(OverlayStore, ItIsFaultSafeOnlyIfBothAre) {
  EXPECT_TRUE(store::make_overlay(memory(1), memory(1), 0, 1)->traits().is_fault_safe);
  auto unsafe = std::make_shared<FailingStore>(memory(1));
  EXPECT_FALSE(store::make_overlay(unsafe, memory(1), 0, 1)->traits().is_fault_safe);
  EXPECT_FALSE(store::make_overlay(memory(1), unsafe, 0, 1)->traits().is_fault_safe);
}

}  // namespace
}  // namespace outcore::store_test
