// Fact: a signal sent to a thread that waits for its page (message delivery) is handled at once; if
// the handler returns, the touch is repeated and a new message comes. Another thread may send the
// signal only with a negative code (SI_QUEUE; the address still arrives in si_addr); with a code of
// the kernel a thread may signal only itself.
//
// In a system call the signal stays pending, and the wait starts again until the page is present.
// So a failed read cannot be reported by a signal to the thread that waits for it.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

int send_sigbus(pid_t thread, int code, char* address) {
  siginfo_t info{};
  info.si_signo = SIGBUS;
  info.si_code = code;
  info.si_addr = address;
  return ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), thread, SIGBUS, &info) == 0 ? 0 : -errno;
}

TEST(FactSignalInterruptsWait, TheWaitingThreadGetsTheSignalWithTheAddress) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app, Taking::kMessages));
  Touch touch;
  Sleeper thread(faults, [&] { touch = read_byte(app.page(0) + 10); });
  ASSERT_EQ(faults.next_fault(), app.page(0));
  ASSERT_EQ(send_sigbus(thread.id(), SI_QUEUE, app.page(0) + 10), 0);
  thread.join();
  EXPECT_EQ(touch.signal, SIGBUS);
  EXPECT_EQ(touch.code, SI_QUEUE);
  EXPECT_EQ(touch.address, app.page(0) + 10);
}

TEST(FactSignalInterruptsWait, ACodeOfTheKernelsIsRefusedForAnotherThreadAndAllowedForOneself) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app, Taking::kMessages));
  char seen = 0;
  Sleeper thread(faults, [&] { seen = *static_cast<volatile char*>(app.page(0)); });
  ASSERT_EQ(faults.next_fault(), app.page(0));
  EXPECT_EQ(send_sigbus(thread.id(), BUS_ADRERR, app.page(0)), -EPERM);
  ASSERT_EQ(faults.copy(app.page(0), 7), 0);
  thread.join();
  EXPECT_EQ(seen, 7);
  const Touch own = run_catching([&] {
    send_sigbus(static_cast<pid_t>(::syscall(SYS_gettid)), BUS_ADRERR, app.page(0) + 10);
    return char{0};
  });
  EXPECT_EQ(own.signal, SIGBUS);
  EXPECT_EQ(own.code, BUS_ADRERR);
  EXPECT_EQ(own.address, app.page(0) + 10);
}

std::atomic<int> handled = 0;

TEST(FactSignalInterruptsWait, IfTheHandlerReturnsANewMessageComes) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app, Taking::kMessages));
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { ++handled; };
  ASSERT_EQ(::sigaction(SIGBUS, &action, &before), 0);
  handled = 0;
  char seen = 0;
  Sleeper thread(faults, [&] { seen = *static_cast<volatile char*>(app.page(0)); });
  ASSERT_EQ(faults.next_fault(), app.page(0));
  ASSERT_EQ(send_sigbus(thread.id(), SI_QUEUE, app.page(0)), 0);
  EXPECT_EQ(faults.next_fault(), app.page(0));
  EXPECT_EQ(handled, 1);
  ASSERT_EQ(faults.copy(app.page(0), 7), 0);
  thread.join();
  EXPECT_EQ(seen, 7);
  ::sigaction(SIGBUS, &before, nullptr);
}

TEST(FactSignalInterruptsWait, InASystemCallItDoesNotEndTheWait) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open(Taking::kMessages, 0, Reach::kSystemCallsToo));
  OC_SKIP_IF(faults.watch(app, UFFDIO_REGISTER_MODE_MISSING));
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { ++handled; };
  ASSERT_EQ(::sigaction(SIGBUS, &action, &before), 0);
  handled = 0;
  const Memfd file(1);
  ssize_t got = 0;
  Sleeper thread(faults, [&] { got = ::pread(file.fd(), app.page(0), 10, 0); });
  ASSERT_EQ(faults.next_fault(), app.page(0));
  ASSERT_EQ(send_sigbus(thread.id(), SI_QUEUE, app.page(0)), 0);
  EXPECT_EQ(faults.next_fault(), app.page(0)) << "asked for again";
  EXPECT_EQ(handled, 0) << "pending";
  ASSERT_EQ(faults.copy(app.page(0), 7), 0);
  thread.join();
  EXPECT_EQ(got, 10);
  EXPECT_EQ(handled, 1);
  ::sigaction(SIGBUS, &before, nullptr);
}

}  // namespace
}  // namespace outcore::kernel_test
