// Fact: a thread that blocks SIGBUS and faults ends its process: the handler is not called.
//
// So programs that mask all signals need message delivery, or an unblocked SIGBUS.
#include <sys/wait.h>
#include <unistd.h>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

constexpr int kNotToBeHad = 77;

bool lacks_userfaultfd(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == kNotToBeHad;
}

int touch_with_blocked(int signal) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  if (!faults.open_private(app).empty()) return kNotToBeHad;
  struct sigaction action {};
  action.sa_handler = [](int) { ::_exit(1); };
  ::sigaction(SIGBUS, &action, nullptr);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, signal);
  ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  return *static_cast<volatile char*>(app.page(0));
}

TEST(FactBlockedSignal, AFaultWithSigbusBlockedKillsTheProcess) {
  const int status = status_of_child([] { return touch_with_blocked(SIGBUS); });
  if (lacks_userfaultfd(status)) GTEST_SKIP() << "userfaultfd is not to be had";
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGBUS);
}

TEST(FactBlockedSignal, AFaultWithAnotherSignalBlockedCallsTheHandler) {
  const int status = status_of_child([] { return touch_with_blocked(SIGUSR1); });
  if (lacks_userfaultfd(status)) GTEST_SKIP() << "userfaultfd is not to be had";
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace outcore::kernel_test
