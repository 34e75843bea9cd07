// Event batches: bytes are right however many messages an event thread takes at a time.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

template <unsigned kBatch>
class EventBatchesOf : public OnMechanism {
 protected:
  static constexpr unsigned kThreads = 16;

  RuntimeOptions options() const override {
    RuntimeOptions options = OnMechanism::options();
    options.event_batch = kBatch;
    return options;
  }

  // Many threads fault at once, each on pages of its own, so that messages wait: a write in every
  // third page, in two passes over more than the budget.
  void touch_by_many_threads() {
    const std::string path = file_of(data_bytes());
    Region region = map(path, Access::kReadWrite).value();
    Bytes expected = pattern(data_bytes());
    for (uint64_t page = 0; page < data_bytes() / 4096; page += 3)
      expected[page * 4096 + 7] = ~expected[page * 4096 + 7];
    std::atomic<uint64_t> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int pass = 0; pass < 2; ++pass)
          for (uint64_t page = t; page < data_bytes() / 4096; page += kThreads) {
            std::byte* const at = region.data() + page * 4096;
            if (pass == 0 && page % 3 == 0) at[7] = ~at[7];
            wrong += !std::equal(at, at + 4096, expected.data() + page * 4096);
          }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0U);
    EXPECT_GT(runtime_->metrics().counters.evictions, 0U);
    ASSERT_TRUE(region.unmap().ok());
    EXPECT_TRUE(read_file(path) == expected);
  }
};

std::vector<Mechanism> messages_alone() {
  std::vector<Mechanism> chosen = chosen_mechanisms();
  std::erase_if(chosen, [](const Mechanism& m) { return m.delivery != Delivery::kMessages; });
  return chosen;
}

std::string name(const testing::TestParamInfo<Mechanism>& of) { return name_of(of.param); }

class BatchesOfOne : public EventBatchesOf<1> {};
class BatchesOf64 : public EventBatchesOf<64> {};
INSTANTIATE_TEST_SUITE_P(Messages, BatchesOfOne, testing::ValuesIn(messages_alone()), name);
INSTANTIATE_TEST_SUITE_P(Messages, BatchesOf64, testing::ValuesIn(messages_alone()), name);

TEST_P(BatchesOfOne, BringRightBytesToManyThreads) { touch_by_many_threads(); }
TEST_P(BatchesOf64, BringRightBytesToManyThreads) { touch_by_many_threads(); }

}  // namespace
}  // namespace outcore
