// The automatic policy on real memory: pages are probed while threads read and write them.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/tests/conformance/mechanism.h"
#include "core/tests/sim/random.h"

namespace outcore {
namespace {

using namespace scene;

class AutoPolicyOf : public testing::TestWithParam<Delivery> {
 protected:
  static constexpr uint64_t kPageBytes = 4096, kBudgetBytes = 96 * kMiB, kPages = 60'000,
                            kThreads = 4;

  void SetUp() override {
    RuntimeOptions options = options_with(kBudgetBytes);
    options.policy = "auto:wait=0%";
    options.page_bytes = kPageBytes;
    runtime_.emplace(Runtime::start(options).value());
  }
  // Skips the test where such a region cannot be had.
  void map(FrameKind frames) {
    MapOptions o;
    o.access = Access::kReadWrite;
    o.size_bytes = kPages * kPageBytes;
    o.may_create = true;
    o.advice = Advice::kRandom;
    o.delivery = GetParam();
    o.frames = frames;
    Result<Region> region = runtime_->map("memory:", o);
    if (!region.ok() && (region.code() == EPERM || region.code() == ENOTSUP))
      GTEST_SKIP() << region.message();
    ASSERT_TRUE(region.ok()) << region.message();
    region_ = std::move(region).value();
  }
  // Each thread counts up a word of its own pages, which lie in a window that slides over all of
  // them, and compares it with what it must be. Words that were wrong.
  uint64_t count_up(uint64_t touches) {
    std::atomic<uint64_t> wrong{0};
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        sim::Random random(t + 1);
        std::vector<uint64_t> counts(kPages / kThreads);
        for (uint64_t i = 0; i < touches; ++i) {
          const uint64_t mine = (i / 16 + random.below(counts.size() / 2)) % counts.size();
          auto* word = reinterpret_cast<volatile uint64_t*>(region_.data() +
                                                            (mine * kThreads + t) * kPageBytes);
          wrong += *word != counts[mine];
          if (i % 4 == 0) *word = ++counts[mine];
        }
      });
    for (std::thread& thread : threads) thread.join();
    return wrong;
  }
  PolicyMetrics policy() const { return runtime_->metrics().policies.at(0); }

  std::optional<Runtime> runtime_;
  Region region_;
};

TEST_P(AutoPolicyOf, LosesNoByteWhilePagesAreProbed) {
  ASSERT_NO_FATAL_FAILURE(map(FrameKind::kShared));
  if (IsSkipped()) return;
  EXPECT_EQ(count_up(40'000), 0u);
  EXPECT_GT(policy().probes, 0u);
  EXPECT_GT(policy().probes_touched, 0u);
  EXPECT_LE(policy().probes_touched, policy().probes);
  EXPECT_NE(runtime_->metrics().to_text().find("policy "), std::string::npos);
}

TEST_P(AutoPolicyOf, ProbesNothingWherePagesCannotBeUnmappedAndKept) {
  if (GetParam() == Delivery::kMprotect) GTEST_SKIP() << "its frames are shared";
  ASSERT_NO_FATAL_FAILURE(map(FrameKind::kPrivate));
  if (IsSkipped()) return;
  EXPECT_EQ(count_up(20'000), 0u);
  if (region_.frames() != FrameKind::kPrivate) GTEST_SKIP() << "the frames were replaced";
  EXPECT_EQ(policy().probes, 0u);
  EXPECT_EQ(policy().policy, "s3-fifo");
}

INSTANTIATE_TEST_SUITE_P(All, AutoPolicyOf,
                         testing::Values(Delivery::kInThread, Delivery::kMessages,
                                         Delivery::kMprotect),
                         [](const auto& chosen) {
                           return chosen.param == Delivery::kInThread   ? "InThread"
                                  : chosen.param == Delivery::kMessages ? "Messages"
                                                                        : "Mprotect";
                         });

}  // namespace
}  // namespace outcore
