// What is called at fork() comes in the order of ForkOrder, whoever registers first; a child counts
// as another process.
#include "core/os/at_fork.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace outcore::os {
namespace {

std::string called;

TEST(AtFork, CallsInItsOrderWhoeverRegistersFirst) {
  at_fork(
      ForkOrder::kHeapThreads, [] { called += "c"; }, [] { called += "C"; }, [] { called += "3"; });
  at_fork(
      ForkOrder::kReleaseLink, [] { called += "a"; }, nullptr, [] { called += "1"; });
  at_fork(
      ForkOrder::kRequests, nullptr, [] { called += "B"; }, [] { called += "2"; });
  at_fork(
      ForkOrder::kRequests, [] { called += "x"; }, nullptr, nullptr);  // it is registered already
  const uint32_t before = process_generation();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(called == "ca123" && process_generation() == before + 1 ? 0 : 1);
  EXPECT_EQ(called, "caBC");
  EXPECT_EQ(process_generation(), before);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

bool is_blocked(int signal) {
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

TEST(AtFork, BlocksSignalsButThoseOfFaultsWhileItsHandlersRun) {
  static bool was_blocked = false, were_faults_blocked = true;
  at_fork(
      ForkOrder::kDefaultHeap,
      [] {
        was_blocked = is_blocked(SIGUSR1) && is_blocked(SIGTERM);
        were_faults_blocked = is_blocked(SIGSEGV) || is_blocked(SIGBUS);
      },
      nullptr, nullptr);
  ASSERT_FALSE(is_blocked(SIGUSR1));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(was_blocked && !is_blocked(SIGUSR1) ? 0 : 1);
  EXPECT_TRUE(was_blocked);
  EXPECT_FALSE(were_faults_blocked);
  EXPECT_FALSE(is_blocked(SIGUSR1));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace outcore::os
