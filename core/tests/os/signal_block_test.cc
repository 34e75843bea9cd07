// Signals that are blocked for a scope, and within it.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "core/os/wait.h"

namespace outcore::os {
namespace {

std::atomic<int> came{0};

bool blocks(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

class SignalBlockOf : public testing::Test {
 protected:
  void SetUp() override {
    came = 0;
    struct sigaction count {};
    count.sa_handler = [](int) { ++came; };
    ASSERT_EQ(sigaction(SIGUSR1, &count, &before_), 0);
  }
  void TearDown() override { sigaction(SIGUSR1, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

TEST_F(SignalBlockOf, AScopeComesAfterItAlone) {
  {
    const SignalBlock block;
    raise(SIGUSR1);
    EXPECT_EQ(came, 0);
  }
  EXPECT_EQ(came, 1);
}

TEST_F(SignalBlockOf, AScopeStaysWhenOthersWithinItEnd) {
  {
    const SignalScope outer;
    {
      const SignalBlock block;
      const SignalScope inner;
      const SignalBlock innermost;
      EXPECT_TRUE(blocks(SIGUSR1));
    }
    raise(SIGUSR1);
    EXPECT_TRUE(blocks(SIGUSR1));
    EXPECT_EQ(came, 0);
  }
  EXPECT_EQ(came, 1);
  EXPECT_FALSE(blocks(SIGUSR1));
  const SignalBlock after;
  EXPECT_TRUE(blocks(SIGUSR1));
}

// Which is seen by what it does not do: the mask is as somebody has made it meanwhile.
TEST_F(SignalBlockOf, AScopeIsAllThatOthersWithinItNeed) {
  const SignalScope scope;
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  {
    const SignalBlock within;
    EXPECT_FALSE(blocks(SIGUSR1));
  }
  EXPECT_TRUE(blocks(SIGUSR2));
  int cancel_state = -1;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  EXPECT_EQ(cancel_state, PTHREAD_CANCEL_DISABLE);
}

TEST_F(SignalBlockOf, AScopeThatIsOverLetsTheThreadBeCancelledAgain) {
  { const SignalScope scope; }
  int cancel_state = -1;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel_state);
  EXPECT_EQ(cancel_state, PTHREAD_CANCEL_ENABLE);
}

// A fault is answered within it; the signals that were blocked before are still.
TEST_F(SignalBlockOf, AScopeLeavesWhatWasThereBefore) {
  sigset_t one, before;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &one, &before);
  {
    const SignalScope scope;
    const SignalBlock within;
    EXPECT_FALSE(blocks(SIGSEGV));
    EXPECT_FALSE(blocks(SIGBUS));
  }
  EXPECT_TRUE(blocks(SIGUSR2));
  EXPECT_FALSE(blocks(SIGUSR1));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(SignalBlockOf, OneThreadIsNotOfAnother) {
  const SignalScope scope;
  bool is_blocked_there = false, is_blocked_after = true;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_UNBLOCK, &all, &before);  // a thread begins with the mask of its maker
  std::thread other([&] {
    {
      const SignalBlock block;
      is_blocked_there = blocks(SIGUSR1);
    }
    is_blocked_after = blocks(SIGUSR1);
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  other.join();
  EXPECT_TRUE(is_blocked_there);
  EXPECT_FALSE(is_blocked_after);
}

}  // namespace
}  // namespace outcore::os
