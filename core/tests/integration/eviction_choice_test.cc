// EvictionChoice: a thread whose events take the times that a test says.
#include "core/paging/eviction_choice.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace outcore::paging {
namespace {

class Program {
 public:
  // So many events, of which each takes so long, by whoever takes the pages out.
  void run(uint64_t events, uint64_t itself_ns, uint64_t keepers_ns) {
    for (uint64_t i = 0; i < events; ++i) {
      is_itself_ = choice_.is_itself(++events_, now_ns_);
      now_ns_ += is_itself_ ? itself_ns : keepers_ns;
      ++(is_itself_ ? by_itself_ : by_keepers_);
    }
  }
  // It does something else meanwhile.
  void rest(uint64_t ns) { now_ns_ += ns; }
  void interrupt() { choice_.interrupt(); }
  bool is_itself() const { return is_itself_; }
  uint64_t by_itself() const { return by_itself_; }
  uint64_t by_keepers() const { return by_keepers_; }
  void start_counting() { by_itself_ = by_keepers_ = 0; }

 private:
  EvictionChoice choice_;
  uint64_t events_ = 0, now_ns_ = 1'000'000, by_itself_ = 0, by_keepers_ = 0;
  bool is_itself_ = false;
};

constexpr uint64_t kPeriod = EvictionChoice::kPeriod;

TEST(EvictionChoice, BeginsByTheThreadAndTriesTheKeepers) {
  Program program;
  program.run(kPeriod, 10'000, 10'000);
  EXPECT_EQ(program.by_keepers(), 0u);
  program.run(kPeriod, 10'000, 10'000);
  EXPECT_GT(program.by_keepers(), 0u);
}

TEST(EvictionChoice, TakesWhatIsQuickerAndSeldomTheOther) {
  for (const bool is_itself_quicker : {true, false}) {
    Program program;
    const uint64_t itself_ns = is_itself_quicker ? 10'000 : 15'000;
    const uint64_t keepers_ns = is_itself_quicker ? 15'000 : 10'000;
    program.run(16 * kPeriod, itself_ns, keepers_ns);
    program.start_counting();
    program.run(1024 * kPeriod, itself_ns, keepers_ns);
    const uint64_t right = is_itself_quicker ? program.by_itself() : program.by_keepers();
    EXPECT_GT(right, 1024 * kPeriod * 97 / 100);
    EXPECT_LT(right, 1024 * kPeriod) << "it must notice if that changes";
  }
}

TEST(EvictionChoice, FollowsAProgramThatChanges) {
  Program program;
  program.run(200 * kPeriod, 10'000, 15'000);
  program.run(200 * kPeriod, 15'000, 10'000);
  program.start_counting();
  program.run(200 * kPeriod, 15'000, 10'000);
  EXPECT_GT(program.by_keepers(), 200 * kPeriod * 9 / 10);
}

// Whenever it comes: while the thread does it, and while the keepers are tried for the first time.
TEST(EvictionChoice, IsNotChangedForGoodByAPause) {
  for (const bool is_itself_quicker : {true, false})
    for (const uint64_t at : {uint64_t{100}, kPeriod + 200, 64 * kPeriod}) {
      Program program;
      const uint64_t itself_ns = is_itself_quicker ? 10'000 : 15'000;
      const uint64_t keepers_ns = is_itself_quicker ? 15'000 : 10'000;
      program.run(at, itself_ns, keepers_ns);
      program.rest(1'000'000'000);
      program.run(32 * kPeriod, itself_ns, keepers_ns);
      program.start_counting();
      program.run(64 * kPeriod, itself_ns, keepers_ns);
      const uint64_t right = is_itself_quicker ? program.by_itself() : program.by_keepers();
      EXPECT_GT(right, 64 * kPeriod * 8 / 10) << is_itself_quicker << ' ' << at;
    }
}

// While several threads miss pages there is no choice: their time must not count as that of one.
// Here it is always a rest of the thread's own way.
TEST(EvictionChoice, TakesNoTimeAcrossAnInterruption) {
  Program program;
  program.run(4 * kPeriod, 10'000, 15'000);
  for (int i = 0; i < 64; ++i) {
    while (!program.is_itself()) program.run(1, 10'000, 15'000);
    program.run(kPeriod / 4, 10'000, 15'000);
    program.interrupt();
    program.rest(1'000'000'000);
    program.run(2 * kPeriod, 10'000, 15'000);
  }
  program.start_counting();
  program.run(16 * kPeriod, 10'000, 15'000);
  EXPECT_GT(program.by_itself(), 16 * kPeriod * 8 / 10);
}

// A trial that is interrupted is over: who is interrupted often is not left in the worse way.
TEST(EvictionChoice, IsWhatWasChosenAfterAnInterruption) {
  Program program;
  program.run(4 * kPeriod, 10'000, 20'000);
  while (program.is_itself()) program.run(1, 10'000, 20'000);
  program.start_counting();
  for (int i = 0; i < 100; ++i) {
    program.interrupt();
    program.run(kPeriod - 12, 10'000, 20'000);
  }
  EXPECT_GT(program.by_itself(), 99 * (kPeriod - 12));
}

// Also if it is interrupted in each trial.
TEST(EvictionChoice, TrialsThatAreInterruptedStaySeldom) {
  Program program;
  program.run(4 * kPeriod, 10'000, 20'000);
  program.start_counting();
  for (int i = 0; i < 300; ++i) {
    program.run(3 * kPeriod, 10'000, 20'000);
    program.interrupt();
  }
  EXPECT_LT(program.by_keepers(), 300 * 3 * kPeriod / 8);
}

TEST(EvictionChoice, EventsAndTimesOfBeforeBeginAnew) {
  EvictionChoice choice;
  EXPECT_TRUE(choice.is_itself(100'000, 1'000'000'000));
  EXPECT_TRUE(choice.is_itself(1'000, 500)) << "of a thread that was off the processor";
  EXPECT_TRUE(choice.is_itself(1'200, 1'000'000));
}

}  // namespace
}  // namespace outcore::paging
