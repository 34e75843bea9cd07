// A process that is stopped (SIGSTOP, Ctrl-Z) while its threads wait, and goes on.
#include <signal.h>
#include <sys/wait.h>

#include <thread>

#include "core/os/kernel_features.h"
#include "core/os/wait.h"
#include "core/tests/conformance/common.h"
#include "core/tests/conformance/faulty_store.h"
#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

constexpr uint64_t kWaitMsMax = 3000;

// What the test and its child both see.
struct Seen {
  std::atomic<uint32_t> is_waiting{0}, may_store{0};
};

class Stopped : public testing::TestWithParam<Delivery> {
 protected:
  void SetUp() override {
    OUTCORE_NEEDS_THREADS_IN_CHILD();
    const auto kernel = os::detect_kernel_features("all");
    ASSERT_TRUE(kernel.ok()) << kernel.message();
    if (GetParam() == Delivery::kMessages && !kernel.value().has_messages)
      GTEST_SKIP() << kernel.value().why_no_messages;
  }

  // Threads write four times the budget, and their store takes nothing until it may.
  int write_more_than_there_is_room_for() const {
    constexpr uint64_t kBytes = 4 * kMiB, kThreads = 4;
    const auto store = std::make_shared<FaultyStore>(Bytes(kBytes), FaultyStore::safe());
    store->holds_writes = true;
    RuntimeOptions options = options_with(kMiB);
    options.wait_ms_max = kWaitMsMax;
    options.delivery = GetParam();
    auto runtime = Runtime::start(options);
    if (!runtime) return 2;
    MapOptions how;
    how.access = Access::kReadWrite;
    auto region = runtime.value().map(store, how);
    if (!region) return 3;
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (uint64_t at = t * 4096; at < kBytes; at += kThreads * 4096)
          region.value().data()[at] = byte_at(at);
      });
    // The only thread that could wait may be storing instead: one that has taken the messages of
    // all others, and that found its own frame just before there was none.
    const uint64_t until_ns = os::now_ns() + 2'000'000'000;
    for (uint64_t waits = 0; waits < 2; os::yield()) {
      waits = runtime.value().metrics().counters.waits_for_frame;
      if (store->writers != 0 && os::now_ns() >= until_ns) break;
    }
    seen_->is_waiting.store(1);
    os::wake_between_processes(&seen_->is_waiting);
    while (seen_->may_store.load() == 0)
      os::wait_between_processes(&seen_->may_store, 0, 10'000'000);
    store->holds_writes = false;
    store->holds_writes.notify_all();
    for (std::thread& thread : threads) thread.join();
    if (!region.value().unmap().ok()) return 4;
    for (uint64_t at = 0; at < kBytes; at += 4096)
      if (store->bytes()[at] != byte_at(at)) return 5;
    return 0;
  }

  const Common<Seen> common_;
  Seen* const seen_ = &common_[0];
};
INSTANTIATE_TEST_SUITE_P(By, Stopped, testing::Values(Delivery::kInThread, Delivery::kMessages),
                         [](const testing::TestParamInfo<Delivery>& of) {
                           return of.param == Delivery::kInThread ? "InThread" : "Messages";
                         });

// It is stopped for longer than anybody waits.
TEST_P(Stopped, WhoWaitsForRoomGoesOnWaiting) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(write_more_than_there_is_room_for());
  wait_for_child(seen_->is_waiting, 1, child);
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status)) << status;
  const uint64_t until_ns = os::now_ns() + (kWaitMsMax + 100) * 1'000'000;
  for (std::atomic<uint32_t> nobody{0}; os::now_ns() < until_ns;)
    os::wait(&nobody, 0, until_ns - os::now_ns());
  seen_->may_store.store(1);
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace outcore
