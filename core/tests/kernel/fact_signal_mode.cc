// Fact: with UFFD_FEATURE_SIGBUS the faulting thread gets SIGBUS with the address, and the
// processor's error code says whether it was a write; a system call gets EFAULT.
#include <unistd.h>

#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

TEST(FactSignalMode, ATouchRaisesSigbusWithItsAddressAndWhetherItWrote) {
  const Mapping app = Mapping::anonymous(2);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  const Touch read = read_byte(app.page(1) + 100);
  EXPECT_EQ(read.signal, SIGBUS);
  EXPECT_EQ(read.code, BUS_ADRERR);
  EXPECT_EQ(read.address, app.page(1) + 100);
  EXPECT_FALSE(read.is_write);
  const Touch write = write_byte(app.page(1) + 200, 1);
  EXPECT_EQ(write.signal, SIGBUS);
  EXPECT_EQ(write.address, app.page(1) + 200);
#ifdef __x86_64__
  EXPECT_TRUE(write.is_write);
#endif
}

TEST(FactSignalMode, SharedFramesSignalMissingAndMinorFaultsAlike) {
  const Memfd memfd(2);
  const Mapping app = Mapping::of(memfd.fd(), 2);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  memfd.write(1, 7);
  for (size_t i = 0; i < 2; ++i) {
    const Touch read = read_byte(app.page(i));
    EXPECT_EQ(read.signal, SIGBUS);
    EXPECT_EQ(read.address, app.page(i));
    EXPECT_FALSE(read.is_write);
  }
}

TEST(FactSignalMode, ASystemCallOnAnAbsentPageIsEfault) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  const Memfd file(1);
  file.write(0, 7);
  EXPECT_EQ(::pread(file.fd(), app.page(0), kPage, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(::pwrite(file.fd(), app.page(0), kPage, 0), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(file.first_byte(0), 7);
}

TEST(FactSignalMode, ASystemCallThatWritesAProtectedPageIsEfault) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  ASSERT_EQ(faults.copy(app.page(0), 7, UFFDIO_COPY_MODE_WP), 0);
  const Memfd file(1);
  EXPECT_EQ(::pwrite(file.fd(), app.page(0), kPage, 0), kPage) << "it may be read";
  EXPECT_EQ(::pread(file.fd(), app.page(0), kPage, 0), -1);
  EXPECT_EQ(errno, EFAULT);
}

}  // namespace
}  // namespace outcore::kernel_test
