// What is called at fork() comes in the order of ForkOrder, whoever registers first; a child counts
// as another process.
#include "core/os/at_fork.h"

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

}  // namespace
}  // namespace outcore::os
