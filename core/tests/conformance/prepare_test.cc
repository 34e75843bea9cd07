// prepare(): zero pages for ranges that will be written for the first time, where the store has no
// bytes.
#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

// A store that knows which of its ranges are zero.
class SparseBytes final : public FaultyStore {
 public:
  using FaultyStore::FaultyStore;
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override {
    std::vector<std::byte> bytes(size_bytes);
    const_cast<SparseBytes*>(this)->read(offset, bytes);
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
  }
};

class PrepareOf : public OnMechanism {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(OnMechanism::SetUp());
    if (IsSkipped()) return;
    std::vector<std::byte> bytes = pattern(data_bytes());
    std::fill(bytes.begin() + static_cast<ptrdiff_t>(hole_begin()), bytes.end(), std::byte{0});
    store_ = std::make_shared<SparseBytes>(std::move(bytes));
    MapOptions options = map_options(Access::kReadWrite);
    options.advice = Advice::kRandom;
    region_ = runtime_->map(store_, options).value();
  }
  uint64_t hole_begin() const { return data_bytes() / 2 / page_bytes() * page_bytes(); }

  std::shared_ptr<SparseBytes> store_;
  Region region_;
};
OUTCORE_ON_ALL_MECHANISMS(PrepareOf);

TEST_P(PrepareOf, PagesReadAsTheStoreAndKeepWhatIsWritten) {
  for (uint64_t at = 0; at < data_bytes(); at += page_bytes()) {
    ASSERT_TRUE(region_.prepare(at, std::min(8 * page_bytes(), data_bytes() - at)).ok());
    ASSERT_EQ(region_.data()[at], at < hole_begin() ? byte_at(at) : std::byte{0}) << at;
    if (at / page_bytes() % 3 == 0) region_.data()[at + 5] = std::byte{0x5A};
  }
  EXPECT_LE(runtime_->metrics().gauges.used_bytes_max, budget_bytes());
  ASSERT_TRUE(region_.advise(0, data_bytes(), Advice::kDontNeed).ok());
  for (uint64_t at = 0; at < data_bytes(); at += page_bytes()) {
    const std::byte first = at < hole_begin() ? byte_at(at) : std::byte{0};
    const std::byte sixth = at < hole_begin() ? byte_at(at + 5) : std::byte{0};
    ASSERT_EQ(region_.data()[at], first) << at;
    ASSERT_EQ(region_.data()[at + 5], at / page_bytes() % 3 == 0 ? std::byte{0x5A} : sixth) << at;
  }
}

TEST_P(PrepareOf, PagesThatOthersWriteMeanwhileLosesNothing) {
  const uint64_t begin = hole_begin(),
                 pages = std::min<uint64_t>(24, (data_bytes() - begin) / page_bytes());
  for (uint64_t round = 1; round <= 20; ++round) {
    const auto stamp = static_cast<std::byte>(round);
    std::thread writer([&] {
      for (uint64_t i = pages; i-- > 0;) region_.data()[begin + i * page_bytes() + 7] = stamp;
    });
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(region_.prepare(begin, pages * page_bytes()).ok());
    writer.join();
    for (uint64_t i = 0; i < pages; ++i)
      ASSERT_EQ(region_.data()[begin + i * page_bytes() + 7], stamp) << i;
    ASSERT_TRUE(region_.discard(begin, pages * page_bytes()).ok());
  }
}

// Each fault would be counted.
TEST_P(PrepareOf, SmallPagesCostNoFaults) {
  if (page_bytes() != 4096) GTEST_SKIP() << "larger pages are one fault anyway";
  const uint64_t pages = 4;
  ASSERT_TRUE(region_.prepare(hole_begin(), pages * page_bytes()).ok());
  const uint64_t before = runtime_->metrics().counters.faults;
  for (uint64_t i = 0; i < pages; ++i)
    region_.data()[hole_begin() + i * page_bytes()] = std::byte{1};
  EXPECT_EQ(runtime_->metrics().counters.faults, before);
}

}  // namespace
}  // namespace outcore
