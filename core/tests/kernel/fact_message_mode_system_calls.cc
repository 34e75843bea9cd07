// Fact: with messages and privilege a system call on an absent page waits for the page; with
// UFFD_USER_MODE_ONLY it fails with EFAULT.
#include <unistd.h>

#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

TEST(FactMessageModeSystemCalls, ReadIntoAnAbsentPageWaitsForItsPage) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open(Taking::kMessages, 0, Reach::kSystemCallsToo));
  OC_SKIP_IF(faults.watch(app, UFFDIO_REGISTER_MODE_MISSING));
  const Memfd file(1);
  file.write(0, 9);
  ssize_t got = 0;
  Sleeper thread(faults, [&] { got = ::pread(file.fd(), app.page(0), 10, 0); });
  ASSERT_EQ(faults.next_fault(), app.page(0));
  EXPECT_TRUE(thread.is_asleep());
  ASSERT_EQ(faults.copy(app.page(0), 7), 0);
  thread.join();
  EXPECT_EQ(got, 10);
  EXPECT_EQ(app.page(0)[9], 9) << "what was read";
  EXPECT_EQ(app.page(0)[10], 7) << "what was filled";
}

TEST(FactMessageModeSystemCalls, ReadIntoAnAbsentPageOfAMemfdWaitsForItsPage) {
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  Userfault faults;
  OC_SKIP_IF(faults.open(Taking::kMessages, UFFD_FEATURE_MISSING_SHMEM, Reach::kSystemCallsToo));
  OC_SKIP_IF(faults.watch(app, UFFDIO_REGISTER_MODE_MISSING));
  const Memfd file(1);
  file.write(0, 9);
  ssize_t got = 0;
  Sleeper thread(faults, [&] { got = ::pread(file.fd(), app.page(0), 10, 0); });
  ASSERT_EQ(faults.next_fault(), app.page(0));
  ASSERT_EQ(faults.copy(app.page(0), 7), 0);
  thread.join();
  EXPECT_EQ(got, 10);
  EXPECT_EQ(app.page(0)[9], 9);
}

TEST(FactMessageModeSystemCalls, InUserModeOnlyItIsEfaultAndNoMessageIsSent) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app, Taking::kMessages));
  const Memfd file(1);
  EXPECT_EQ(::pread(file.fd(), app.page(0), 10, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_FALSE(faults.has_message());
}

}  // namespace
}  // namespace outcore::kernel_test
