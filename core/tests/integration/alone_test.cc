// One thread alone that writes evicts pages itself, if its store is fast, for a while at least:
// read from who writes what is written back.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/paging/eviction_choice.h"
#include "core/paging/write_cost.h"
#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"
#include "core/tests/sim/random.h"

namespace outcore {
namespace {

using namespace scene;
using paging::WriteCost;

constexpr uint64_t kStorePageBytes = 4096, kStorePages = 4096, kBudgetBytes = 8 << 20;

class ByWhom : public FaultyStore {
 public:
  ByWhom() : FaultyStore(std::vector<std::byte>(kStorePages * kStorePageBytes)) {}
  int write(uint64_t offset, std::span<const std::byte> from) override {
    ++(::gettid() == program.load() ? of_program : of_others);
    return FaultyStore::write(offset, from);
  }
  std::atomic<pid_t> program{0};
  std::atomic<uint64_t> of_program{0}, of_others{0};
};

// Adds one to the first word of pages at random.
void write_at_random(Region& region, int touches, uint64_t seed) {
  sim::Random random(seed);
  for (int i = 0; i < touches; ++i) {
    auto* const at = reinterpret_cast<volatile uint64_t*>(
        region.data() + random.below(kStorePages) * kStorePageBytes);
    *at = *at + 1;
  }
}

uint64_t sum(const Region& region) {
  uint64_t found = 0;
  for (uint64_t page = 0; page < kStorePages; ++page)
    found += *reinterpret_cast<const volatile uint64_t*>(region.data() + page * kStorePageBytes);
  return found;
}

class Alone : public testing::Test {
 protected:
  void SetUp() override {
    RuntimeOptions o = options_with(kBudgetBytes);
    o.delivery = Delivery::kInThread;
    runtime_.emplace(Runtime::start(o).value());
    auto mapped = runtime_->map(store_, {.access = Access::kReadWrite});
    if (!mapped.ok() && mapped.code() == EPERM) GTEST_SKIP() << mapped.message();
    ASSERT_TRUE(mapped.ok()) << mapped.message();
    region_ = std::move(mapped).value();
  }

  std::shared_ptr<ByWhom> store_ = std::make_shared<ByWhom>();
  std::optional<Runtime> runtime_;
  Region region_;
};

TEST_F(Alone, AThreadWritesBackWhatItEvicts) {
  store_->program = ::gettid();
  write_at_random(region_, 40'000, 1);
  EXPECT_EQ(sum(region_), 40'000u);
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "with ThreadSanitizer a page may take longer to store than WriteCost calls fast";
#endif
  EXPECT_GT(store_->of_program.load(), paging::EvictionChoice::kPeriod / 2);
}

TEST_F(Alone, ThreadsInTurnsLoseNoWrite) {
  std::atomic<int> turn{0};
  const auto write_in_turns = [&](int own) {
    for (int i = 0; i < 1000; ++i) {
      for (int seen = turn; seen != own; seen = turn) turn.wait(seen);
      write_at_random(region_, 10, 2 * i + own);
      turn = 1 - own;
      turn.notify_one();
    }
  };
  {
    std::jthread other([&] { write_in_turns(1); });
    write_in_turns(0);
  }
  EXPECT_EQ(sum(region_), 20'000u);
}

TEST(WriteCost, IsKnownAfterSomePagesAndForAWhile) {
  WriteCost cost;
  EXPECT_EQ(cost.level(1), WriteCost::Level::kUnknown);
  cost.note(1, 50'000'000, 1000);  // the thread was off the processor
  cost.note(WriteCost::kPagesLeast - 2, 4000 * (WriteCost::kPagesLeast - 2), 2000);
  EXPECT_EQ(cost.level(2000), WriteCost::Level::kUnknown);
  cost.note(1, 6000, 3000);
  EXPECT_EQ(cost.level(3000), WriteCost::Level::kLow) << "the least of the first ones";
  cost.note(1, 50'000'000, 4000);
  EXPECT_EQ(cost.level(4000), WriteCost::Level::kLow) << "one alone says little";
  for (uint64_t i = 0; i < 64; ++i) cost.note(8, 8 * 200'000, 5000);
  EXPECT_EQ(cost.level(5000), WriteCost::Level::kHigh);
  EXPECT_EQ(cost.level(5000 + WriteCost::kForgottenNs), WriteCost::Level::kHigh);
  EXPECT_EQ(cost.level(5001 + WriteCost::kForgottenNs), WriteCost::Level::kUnknown);
  cost.note(WriteCost::kPagesLeast, 3000 * WriteCost::kPagesLeast, 6000 + WriteCost::kForgottenNs);
  EXPECT_EQ(cost.level(6000 + WriteCost::kForgottenNs), WriteCost::Level::kLow)
      << "nothing of before counts";
}

}  // namespace
}  // namespace outcore
