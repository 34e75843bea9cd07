// Fact: a read-only mapping of a memfd can be registered, filled and freed, if the memfd itself is
// writable.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

TEST(FactReadOnlyMapping, IsFilledByCopyAndByContinueAndFreedByRemove) {
  const Memfd memfd(2);
  const Mapping app = Mapping::of(memfd.fd(), 2, PROT_READ);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  ASSERT_EQ(faults.copy(app.page(0), 7, UFFDIO_COPY_MODE_WP), 0);
  memfd.write(1, 8);
  ASSERT_EQ(faults.resume(app.page(1), true), 0);
  EXPECT_EQ(read_byte(app.page(0)).value, 7);
  EXPECT_EQ(read_byte(app.page(1)).value, 8);
  EXPECT_EQ(write_byte(app.page(0), 1).signal, SIGSEGV) << "but not written";
  ASSERT_EQ(::madvise(app.page(0), app.size_bytes(), MADV_REMOVE), 0);
  EXPECT_EQ(read_byte(app.page(0)).signal, SIGBUS);
  EXPECT_FALSE(memfd.holds(0));
}

TEST(FactReadOnlyMapping, OfAMemfdOpenedReadOnlyCannotBeWatched) {
  const Memfd memfd(1);
  const std::string path = "/proc/self/fd/" + std::to_string(memfd.fd());
  const int read_only = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (read_only < 0) GTEST_SKIP() << "/proc is not mounted";
  const Mapping app = Mapping::of(read_only, 1, PROT_READ);
  ::close(read_only);
  Userfault faults;
  OC_SKIP_IF(faults.open(Taking::kSignals, UFFD_FEATURE_MISSING_SHMEM));
  EXPECT_NE(faults.watch(app, UFFDIO_REGISTER_MODE_MISSING), "");
  EXPECT_EQ(errno, EPERM);
}

TEST(FactReadOnlyMapping, OfAnonymousMemoryIsFilledByCopy) {
  const Mapping app = Mapping::anonymous(1, PROT_READ);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  ASSERT_EQ(faults.copy(app.page(0), 7), 0);
  EXPECT_EQ(read_byte(app.page(0)).value, 7);
  EXPECT_EQ(write_byte(app.page(0), 1).signal, SIGSEGV);
}

}  // namespace
}  // namespace outcore::kernel_test
