// Region::read and write of much: what the store is asked for, and what becomes of errors.
#include <algorithm>
#include <filesystem>

#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

constexpr uint64_t kStoreBytes = 8 * kMiB;

class RegionCopies : public OnMechanism {
 protected:
  std::shared_ptr<FaultyStore> store(StoreTraits traits = FaultyStore::safe()) {
    return std::make_shared<FaultyStore>(pattern(kStoreBytes), traits);
  }
  uint64_t pages() const { return kStoreBytes / page_bytes(); }
};

INSTANTIATE_TEST_SUITE_P(Mechanisms, RegionCopies,
                         testing::Values(Mechanism{Delivery::kInThread, FrameKind::kShared, 4096},
                                         Mechanism{Delivery::kInThread, FrameKind::kPrivate, 4096},
                                         Mechanism{Delivery::kMessages, FrameKind::kShared, 4096},
                                         Mechanism{Delivery::kMprotect, FrameKind::kShared, 4096}),
                         [](const auto& of) { return name_of(of.param); });

TEST_P(RegionCopies, AColdReadAsksTheStoreForManyPagesAtATime) {
  for (const bool is_safe : {true, false}) {
    const auto from = store(is_safe ? FaultyStore::safe() : FaultyStore::unsafe());
    const Region region = map(from, Access::kReadOnly).value();
    Bytes bytes(kStoreBytes);
    ASSERT_TRUE(region.read(0, bytes).ok());
    EXPECT_EQ(first_difference(bytes.data(), kStoreBytes), kStoreBytes);
    EXPECT_LE(from->reads, pages() / 3) << is_safe;
    EXPECT_LE(from->read_sum, kStoreBytes + kStoreBytes / 8) << is_safe;
  }
}

TEST_P(RegionCopies, WhatIsInMemoryIsNotReadAgain) {
  const auto from = store();
  MapOptions alone = map_options(Access::kReadOnly);
  alone.advice = Advice::kRandom;
  const Region region = runtime_->map(from, alone).value();
  constexpr uint64_t kFew = 256 * kKiB;
  for (uint64_t at = 0; at < kFew; at += 4 * page_bytes())
    ASSERT_TRUE(*static_cast<const volatile std::byte*>(region.data() + at) == byte_at(at));
  Bytes bytes(kFew);
  ASSERT_TRUE(region.read(0, bytes).ok());
  EXPECT_EQ(first_difference(bytes.data(), kFew), kFew);
  const Counters counters = runtime_->metrics().counters;
  EXPECT_EQ(counters.fills + counters.prefetch_fills, kFew / page_bytes());
  const uint64_t reads = from->reads;
  ASSERT_TRUE(region.read(0, bytes).ok());
  EXPECT_EQ(from->reads, reads);
}

TEST_P(RegionCopies, BytesBeforeAFailedPageAreCopiedAndTheErrorNamesIt) {
  const auto from = store();
  const uint64_t failed = 700;
  from->error_offset = failed * page_bytes();
  from->read_error = EIO;
  Region region = map(from, Access::kReadOnly).value();
  Bytes bytes(kStoreBytes);
  const Status read = region.read(0, bytes);
  ASSERT_EQ(read.code(), EIO);
  EXPECT_NE(read.message().find("read page 700 of faulty:store"), std::string::npos)
      << read.message();
  EXPECT_EQ(first_difference(bytes.data(), failed * page_bytes()), failed * page_bytes());
  EXPECT_TRUE(std::all_of(bytes.begin() + static_cast<ptrdiff_t>(failed * page_bytes()),
                          bytes.end(), [](std::byte b) { return b == std::byte{0}; }));
  from->read_error = 0;
  ASSERT_TRUE(region.retry_failed().ok());
  ASSERT_TRUE(region.read(0, bytes).ok());
  EXPECT_EQ(first_difference(bytes.data(), kStoreBytes), kStoreBytes);
}

TEST_P(RegionCopies, AWriteOfMuchAsksTheStoreForManyPagesAtATime) {
  const auto to = store();
  Region region = map(to, Access::kReadWrite).value();
  Bytes bytes(kStoreBytes, std::byte{0x5A});
  ASSERT_TRUE(region.write(0, bytes).ok());
  EXPECT_LE(to->reads, pages() / 3);
  ASSERT_TRUE(region.unmap().ok());
  EXPECT_TRUE(to->bytes() == bytes);
}

TEST_P(RegionCopies, OfAFileThatOthersCutTheErrorsSayHowLongItIs) {
  const std::string path = file_of(kStoreBytes);
  Region region = map(path, Access::kReadWrite).value();
  const uint64_t kept = kStoreBytes / 2, last = kStoreBytes - page_bytes();
  Bytes page(page_bytes(), std::byte{0x5A});
  ASSERT_TRUE(region.write(last, page).ok());
  std::filesystem::resize_file(path, kept);
  const std::string told = path + " was cut to " + std::to_string(kept) + " bytes";
  const auto tells = [&](const Status& s) {
    EXPECT_EQ(s.code(), EIO);
    EXPECT_NE(s.message().find(told), std::string::npos) << s.message();
  };
  tells(region.read(kept + page_bytes(), page));
  tells(region.flush());
  tells(region.flush());
  EXPECT_EQ(std::filesystem::file_size(path), kept);
  std::fill(page.begin(), page.end(), std::byte{0});
  ASSERT_TRUE(region.read(last, page).ok()) << "it is kept in memory";
  EXPECT_EQ(page[0], std::byte{0x5A});
  std::filesystem::resize_file(path, kStoreBytes);
  EXPECT_TRUE(region.flush().ok()) << "so that what is in memory can be saved";
  tells(region.sync());  // what was cut off is lost
  EXPECT_EQ(read_file(path)[last], std::byte{0x5A});
}

TEST_P(RegionCopies, WorkAtBudgetsOfAFewPages) {
  uint64_t tried = 0;
  for (uint64_t budget = 64 * kKiB; budget <= kMiB; budget *= 2) {
    const auto in = store();
    auto runtime = Runtime::start(options_with(budget));
    if (!runtime.ok()) continue;  // too small for any pages
    auto region = runtime.value().map(in, map_options(Access::kReadWrite));
    if (!region.ok()) continue;
    ++tried;
    Bytes bytes(kStoreBytes);
    ASSERT_TRUE(region.value().read(0, bytes).ok()) << budget;
    EXPECT_EQ(first_difference(bytes.data(), kStoreBytes), kStoreBytes) << budget;
    std::fill(bytes.begin(), bytes.end(), std::byte{0x5A});
    ASSERT_TRUE(region.value().write(0, bytes).ok()) << budget;
    EXPECT_LE(runtime.value().metrics().gauges.used_bytes_max, budget);
    ASSERT_TRUE(region.value().unmap().ok()) << budget;
    EXPECT_TRUE(in->bytes() == bytes) << budget;
  }
  EXPECT_GT(tried, 0u);
}

TEST_P(RegionCopies, WorkWherePinsLeaveLittleOfTheBudget) {
  const auto from = store();
  Region region = map(from, Access::kReadOnly).value();
  uint64_t pinned = 0;
  while (region.pin(pinned, page_bytes()).ok()) pinned += page_bytes();
  EXPECT_GT(pinned, 0u);
  Bytes bytes(kStoreBytes);
  ASSERT_TRUE(region.read(0, bytes).ok());
  EXPECT_EQ(first_difference(bytes.data(), kStoreBytes), kStoreBytes);
  ASSERT_TRUE(region.unpin(0, pinned).ok());
}

}  // namespace
}  // namespace outcore
