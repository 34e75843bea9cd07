// Fact: a page past the end of a file, mapped over a registered page, raises SIGBUS at every touch
// (EFAULT in system calls), also in a thread that waits for the earlier page, once it is woken.
// When the range is mapped and registered again, a touch faults again.
//
// So with message delivery a failed read reaches the thread that touched the page even without
// POISON (before Linux 6.6); no signal would end its system call.
#include <unistd.h>

#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

// Makes touches of the page fail.
void map_past_the_end(const Mapping& app) {
  const Memfd empty(0);
  ASSERT_EQ(
      ::mmap(app.page(0), kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, empty.fd(), 0),
      app.page(0));
}

TEST(FactPastTheEnd, EveryTouchRaisesSigbusAndSystemCallsSayEfault) {
  const Mapping app = Mapping::anonymous(1);
  map_past_the_end(app);
  for (int i = 0; i < 2; ++i) {
    const Touch touch = i == 0 ? read_byte(app.page(0) + 5) : write_byte(app.page(0) + 5, 1);
    EXPECT_EQ(touch.signal, SIGBUS);
    EXPECT_EQ(touch.code, BUS_ADRERR);
    EXPECT_EQ(touch.address, app.page(0) + 5);
  }
  const Memfd file(1);
  EXPECT_EQ(::pread(file.fd(), app.page(0), kPage, 0), -1);
  EXPECT_EQ(errno, EFAULT);
}

TEST(FactPastTheEnd, AThreadWaitingForItsPageGetsSigbus) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app, Taking::kMessages));
  Touch touch;
  Sleeper thread(faults, [&] { touch = read_byte(app.page(0)); });
  ASSERT_EQ(faults.next_fault(), app.page(0));
  map_past_the_end(app);
  ASSERT_EQ(faults.wake(app.page(0)), 0);
  thread.join();
  EXPECT_EQ(touch.signal, SIGBUS);
  EXPECT_FALSE(faults.has_message()) << "no second fault";
}

TEST(FactPastTheEnd, ASystemCallWaitingForItsPageSaysEfault) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open(Taking::kMessages, 0, Reach::kSystemCallsToo));
  OC_SKIP_IF(faults.watch(app, UFFDIO_REGISTER_MODE_MISSING));
  const Memfd file(1);
  ssize_t got = 0;
  int error = 0;
  Sleeper thread(faults, [&] {
    got = ::pread(file.fd(), app.page(0), 10, 0);
    error = errno;
  });
  ASSERT_EQ(faults.next_fault(), app.page(0));
  map_past_the_end(app);
  ASSERT_EQ(faults.wake(app.page(0)), 0);
  thread.join();
  EXPECT_EQ(got, -1);
  EXPECT_EQ(error, EFAULT);
}

TEST(FactPastTheEnd, MappedAndWatchedAnewThePageIsAskedForAgain) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app, Taking::kMessages));
  map_past_the_end(app);
  ASSERT_EQ(read_byte(app.page(0)).signal, SIGBUS);
  ASSERT_EQ(::mmap(app.page(0), kPage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            app.page(0));
  OC_SKIP_IF(faults.watch(app, UFFDIO_REGISTER_MODE_MISSING));
  Touch touch;
  Sleeper thread(faults, [&] { touch = read_byte(app.page(0)); });
  ASSERT_EQ(faults.next_fault(), app.page(0));
  ASSERT_EQ(faults.copy(app.page(0), 7), 0);
  thread.join();
  EXPECT_EQ(touch.value, 7);
}

}  // namespace
}  // namespace outcore::kernel_test
