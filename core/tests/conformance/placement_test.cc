// Placement: where regions are, how they grow, what they give back, and how many there can be.
#include <sys/mman.h>
#include <sys/resource.h>

#include <utility>

#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class PlacementOf : public OnMechanism {};
OUTCORE_ON_ALL_MECHANISMS(PlacementOf);

TEST_P(PlacementOf, AFixedAddressInsideAReservationIsKept) {
  const std::string path = file_of(4 * page_bytes());
  const Reservation reservation = runtime_->reserve(16 * page_bytes()).value();
  MapOptions options = map_options(Access::kReadWrite);
  options.address = reservation.data() + 4 * page_bytes();
  Region region = runtime_->map(path, options).value();
  EXPECT_EQ(region.data(), options.address);
  EXPECT_EQ(first_difference(region.data(), 4 * page_bytes()), 4 * page_bytes());
  ASSERT_TRUE(region.unmap().ok());
  Region again = runtime_->map(path, options).value();
  EXPECT_EQ(again.data(), options.address) << "the place is free again";
  EXPECT_EQ(again.data()[0], byte_at(0));
}

TEST_P(PlacementOf, AFixedAddressOverANeighbourIsRefused) {
  const std::string path = file_of(4 * page_bytes());
  const std::string other = file_of(4 * page_bytes(), "other");
  const Reservation reservation = runtime_->reserve(16 * page_bytes()).value();
  MapOptions options = map_options(Access::kReadWrite);
  options.address = reservation.data() + 4 * page_bytes();
  const Region region = runtime_->map(path, options).value();
  region.data()[0] = std::byte{1};
  for (const uint64_t at : {page_bytes(), 3 * page_bytes(), 4 * page_bytes(), 7 * page_bytes()}) {
    options.address = reservation.data() + at;
    const Result<Region> over = runtime_->map(other, options);
    ASSERT_FALSE(over.ok()) << at;
    EXPECT_EQ(over.code(), EEXIST) << over.message();
  }
  options.address = reservation.data() + 8 * page_bytes();
  EXPECT_TRUE(runtime_->map(other, options).ok()) << "right behind it is free";
  EXPECT_EQ(region.data()[0], std::byte{1});
}

TEST_P(PlacementOf, AddressesThatAreTakenOverAreWholeAndNobodysReservation) {
  const uint64_t bytes = 16 * page_bytes();
  const Reservation there = runtime_->reserve(bytes).value();
  EXPECT_EQ(runtime_->reserve_over(there.data() + page_bytes(), bytes).code(), EEXIST);
  void* const kept = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(kept, MAP_FAILED);
  auto* const at = static_cast<std::byte*>(kept);
  at[0] = std::byte{'k'};
  auto* const last = reinterpret_cast<std::byte*>(~uintptr_t{0} - 4095);
  for (const auto& [address, size] : {std::pair{at, uint64_t{0}},
                                      {at, uint64_t{100}},
                                      {at, ~uint64_t{0} - 5000},
                                      {at + 1, uint64_t{4096}},
                                      {static_cast<std::byte*>(nullptr), uint64_t{4096}},
                                      {last, uint64_t{4096}}})
    EXPECT_EQ(runtime_->reserve_over(address, size).code(), EINVAL) << size;
  EXPECT_EQ(at[0], std::byte{'k'}) << "what was there stays";
  const Reservation over = runtime_->reserve_over(at, bytes).value();
  EXPECT_EQ(over.data(), at);
}

TEST_P(PlacementOf, AFixedAddressOutsideEveryReservationIsRefused) {
  const std::string path = file_of(page_bytes());
  const Reservation reservation = runtime_->reserve(4 * page_bytes()).value();
  MapOptions options = map_options(Access::kReadOnly);
  options.address = reservation.data() + reservation.size_bytes();
  EXPECT_EQ(runtime_->map(path, options).code(), EINVAL);
  options.address = reservation.data() + 1;
  EXPECT_EQ(runtime_->map(path, options).code(), EINVAL);
}

TEST_P(PlacementOf, GrowsInPlace) {
  const uint64_t first = 2 * page_bytes() + page_bytes() / 2 + 100;  // ends inside a page
  const std::string path = file_of(first);
  MapOptions options = map_options(Access::kReadWrite);
  options.reserve_bytes = 16 * page_bytes();
  Region region = runtime_->map(path, options).value();
  const std::byte* place = region.data();
  EXPECT_EQ(first_difference(region.data(), first), first);
  region.data()[first - 1] = std::byte{0x11};
  uint64_t size = first;
  for (const uint64_t larger :
       {first + 1, 3 * page_bytes(), 3 * page_bytes() + 4096 + 5, 16 * page_bytes()}) {
    const Status s = region.grow(larger);
    ASSERT_TRUE(s.ok()) << s.message();
    ASSERT_EQ(region.data(), place);
    ASSERT_EQ(region.size_bytes(), larger);
    for (uint64_t at = size; at < larger; at += 1000)
      ASSERT_EQ(region.data()[at], std::byte{0}) << at;
    region.data()[larger - 1] = std::byte{0x22};
    ASSERT_EQ(region.data()[first - 1], std::byte{0x11});
    size = larger;
  }
  EXPECT_EQ(region.grow(17 * page_bytes()).code(), EINVAL);
  EXPECT_EQ(region.grow(page_bytes()).code(), EINVAL);
  ASSERT_TRUE(region.unmap().ok());
  const Bytes now = read_file(path);
  ASSERT_EQ(now.size(), 16 * page_bytes());
  EXPECT_EQ(now[first - 1], std::byte{0x11});
  EXPECT_EQ(now[3 * page_bytes() - 1], std::byte{0x22});
  EXPECT_EQ(now[16 * page_bytes() - 1], std::byte{0x22});
}

TEST_P(PlacementOf, GrowsBesideAPinnedPage) {
  const uint64_t first = 2 * page_bytes() + 4096;
  MapOptions options = map_options(Access::kReadWrite);
  options.reserve_bytes = 8 * page_bytes();
  Region region = runtime_->map(file_of(first), options).value();
  ASSERT_TRUE(region.pin(first - 1, 1).ok());
  const Status s = region.grow(8 * page_bytes());
  if (!s.ok()) {  // a refusal is allowed, but must leave the region as it was
    EXPECT_EQ(s.code(), EBUSY) << s.message();
    EXPECT_EQ(region.size_bytes(), first);
    ASSERT_TRUE(region.unpin(first - 1, 1).ok());
    ASSERT_TRUE(region.grow(8 * page_bytes()).ok());
  } else {
    ASSERT_TRUE(region.unpin(first - 1, 1).ok());
  }
  EXPECT_EQ(first_difference(region.data(), first), first);
  for (uint64_t at = first; at < 8 * page_bytes(); at += 512)
    ASSERT_EQ(region.data()[at], std::byte{0});
}

// For one view and for another of the same store; with the page in memory, and evicted before.
TEST_P(PlacementOf, WhatWasWrittenPastTheEndIsZerosOnceTheStoreIsLonger) {
  const uint64_t first = page_bytes() + 904, longer = 6 * page_bytes();
  for (const bool has_another : {false, true}) {
    const std::string path = file_of(first);
    MapOptions options = map_options(Access::kReadWrite);
    options.reserve_bytes = 8 * page_bytes();
    Region region = runtime_->map(path, options).value();
    std::optional<Region> another;
    if (has_another) {
      Result<Region> mapped = runtime_->map(path, options);
      if (mapped.code() == ENOTSUP) GTEST_SKIP() << mapped.message();
      another = std::move(mapped).value();
    }
    Region& written = has_another ? *another : region;
    written.data()[first - 1] = std::byte{0x33};
    std::memset(written.data() + first, 'X', 4096 - first % 4096);
    ASSERT_EQ(region.data()[first], std::byte{'X'});
    const Status s = region.grow(longer);
    ASSERT_TRUE(s.ok()) << s.message();
    for (uint64_t at = first; at < longer; at += 100) {
      ASSERT_EQ(region.data()[at], std::byte{0}) << at;
      if (at / 4096 == first / 4096) {
        ASSERT_EQ(written.data()[at], std::byte{0}) << at;
      }
    }
    ASSERT_TRUE(region.flush().ok());
    const Bytes now = read_file(path);
    ASSERT_EQ(now.size(), longer);
    EXPECT_EQ(now[first - 1], std::byte{0x33});
    EXPECT_TRUE(std::all_of(now.begin() + static_cast<ptrdiff_t>(first), now.end(),
                            [](std::byte b) { return b == std::byte{0}; }));
  }
}

TEST_P(PlacementOf, GrowsWithinItsLastSystemPage) {
  MapOptions options = map_options(Access::kReadWrite);
  const std::string path = file_of(page_bytes() + 100);
  Region region = runtime_->map(path, options).value();
  std::memset(region.data() + page_bytes() + 100, 'X', 200);
  ASSERT_TRUE(region.grow(page_bytes() + 300).ok());
  EXPECT_EQ(region.size_bytes(), page_bytes() + 300);
  EXPECT_EQ(region.data()[page_bytes() + 200], std::byte{0});
  region.data()[page_bytes() + 299] = std::byte{9};
  ASSERT_TRUE(region.unmap().ok());
  EXPECT_EQ(read_file(path).back(), std::byte{9});
}

TEST_P(PlacementOf, AnEmptyFileGrows) {
  const std::string path = file_of(0);
  MapOptions options = map_options(Access::kReadWrite);
  options.reserve_bytes = 4 * page_bytes();
  Result<Region> region = runtime_->map(path, options);
  ASSERT_TRUE(region.ok()) << region.message();
  ASSERT_TRUE(region->grow(page_bytes() + 1).ok());
  EXPECT_EQ(region->data()[page_bytes()], std::byte{0});
  region->data()[page_bytes()] = std::byte{5};
  ASSERT_TRUE(region->unmap().ok());
  EXPECT_EQ(read_file(path).size(), page_bytes() + 1);
  EXPECT_EQ(read_file(path)[page_bytes()], std::byte{5});
}

TEST_P(PlacementOf, OnlyCreateAndGrowMakeAFileLarger) {
  const std::string path = file_of(page_bytes());
  MapOptions options = map_options(Access::kReadWrite);
  options.size_bytes = 4 * page_bytes();
  EXPECT_FALSE(runtime_->map(path, options).ok());
  EXPECT_EQ(read_file(path).size(), page_bytes());
  options.may_create = true;
  {
    const Region region = runtime_->map(path, options).value();
    EXPECT_EQ(region.data()[0], byte_at(0));
    EXPECT_EQ(region.data()[4 * page_bytes() - 1], std::byte{0});
  }
  EXPECT_EQ(read_file(path).size(), 4 * page_bytes());
  Region created = runtime_->map(folder_ / "new", options).value();
  created.data()[1] = std::byte{1};
  ASSERT_TRUE(created.unmap().ok());
  EXPECT_EQ(read_file(folder_ / "new").size(), 4 * page_bytes());
}

TEST_P(PlacementOf, DiscardedRangesReadZero) {
  const uint64_t size = 8 * page_bytes();
  const std::string path = file_of(size);
  Region region = map(path, Access::kReadWrite).value();
  for (uint64_t at = 0; at < size; at += page_bytes()) region.data()[at] = std::byte{1};
  const uint64_t from = page_bytes() + 4096, bytes = 3 * page_bytes();
  ASSERT_TRUE(region.discard(from, bytes).ok());
  for (uint64_t at = from; at < from + bytes; ++at)
    ASSERT_EQ(region.data()[at], std::byte{0}) << at;
  region.data()[from + bytes / 2] = std::byte{0x31};  // and can be written again
  ASSERT_TRUE(region.unmap().ok());
  Bytes expected = pattern(size);
  for (uint64_t at = 0; at < size; at += page_bytes()) expected[at] = std::byte{1};
  std::fill_n(expected.begin() + static_cast<ptrdiff_t>(from), bytes, std::byte{0});
  expected[from + bytes / 2] = std::byte{0x31};
  EXPECT_TRUE(read_file(path) == expected);
}

TEST_P(PlacementOf, DiscardSaysWhatItCannotDo) {
  const std::string path = file_of(4 * page_bytes());
  Region region = map(path, Access::kReadWrite).value();
  EXPECT_EQ(region.discard(1, 4096).code(), EINVAL);
  EXPECT_EQ(region.discard(0, 100).code(), EINVAL);
  EXPECT_EQ(region.discard(0, 5 * page_bytes()).code(), EINVAL);
  ASSERT_TRUE(region.pin(page_bytes(), 1).ok());
  EXPECT_EQ(region.discard(page_bytes(), page_bytes()).code(), EBUSY);
  ASSERT_TRUE(region.unpin(page_bytes(), 1).ok());
  ASSERT_TRUE(region.unmap().ok());
  Region reader = map(path, Access::kReadOnly).value();
  EXPECT_EQ(reader.discard(0, page_bytes()).code(), EACCES);
}

TEST_P(PlacementOf, ATebibyteCanBeReserved) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer's shadow leaves no room for that many addresses";
#endif
  const std::string path = file_of(page_bytes());
  MapOptions options = map_options(Access::kReadWrite);
  options.reserve_bytes = uint64_t{1} << 40;
  Region region = runtime_->map(path, options).value();
  ASSERT_TRUE(region.grow(uint64_t{1} << 39).ok());
  region.data()[(uint64_t{1} << 39) - 1] = std::byte{0x7E};
  EXPECT_EQ(region.data()[uint64_t{1} << 38], std::byte{0});
  EXPECT_EQ(first_difference(region.data(), page_bytes()), page_bytes());
  EXPECT_LT(runtime_->metrics().gauges.metadata_bytes, 16 * kMiB);
  ASSERT_TRUE(region.unmap().ok());
  EXPECT_EQ(std::filesystem::file_size(path), uint64_t{1} << 39);
  const Reservation large = runtime_->reserve(uint64_t{1} << 41).value();
  EXPECT_NE(large.data(), nullptr);
}

TEST_P(PlacementOf, ThousandsOfRegionsLiveAtOnce) {
  constexpr uint64_t kRegions = 2000;
  const std::string path = file_of(4096 * 64);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const bool can_share = GetParam().frames == FrameKind::kShared;
  std::vector<Region> regions;
  for (uint64_t i = 0; i < kRegions; ++i) {
    MapOptions options = map_options(Access::kReadOnly);
    options.size_bytes = 4096;
    if (can_share) options.offset = i % 64 * 4096;
    Result<Region> region =
        can_share ? runtime_->map(path, options) : runtime_->map("memory:", options);
    ASSERT_TRUE(region.ok()) << i << ": " << region.message();
    regions.push_back(std::move(region).value());
  }
  for (uint64_t i = 0; i < kRegions; ++i)
    ASSERT_EQ(*regions[i].data(), can_share ? byte_at(i % 64 * 4096) : std::byte{0}) << i;
  EXPECT_EQ(runtime_->metrics().regions.size(), kRegions);
  for (Region& region : regions) ASSERT_TRUE(region.unmap().ok());
}

}  // namespace
}  // namespace outcore
