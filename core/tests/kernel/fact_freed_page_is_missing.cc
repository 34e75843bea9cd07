// Fact: a page of a memfd that was unmapped and freed faults as missing again, and COPY works
// despite the marker that its write protection has left.
#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

// Installs the page write-protected, so that unmapping leaves a marker.
void install_and_unmap(const Userfault& faults, const Mapping& app, const Memfd& memfd) {
  ASSERT_EQ(faults.copy(app.page(0), 7, UFFDIO_COPY_MODE_WP), 0);
  ASSERT_EQ(::madvise(app.page(0), kPage, MADV_DONTNEED), 0);
  ASSERT_TRUE(memfd.holds(0)) << "unmapped, not freed";
}

void expect_missing_and_fillable(const Userfault& faults, const Mapping& app, const Memfd& memfd) {
  EXPECT_FALSE(memfd.holds(0));
  EXPECT_EQ(read_byte(app.page(0)).signal, SIGBUS);
  EXPECT_EQ(faults.resume(app.page(0), false), -EFAULT) << "nothing to rescue";
  ASSERT_EQ(faults.copy(app.page(0), 8, UFFDIO_COPY_MODE_WP), 0);
  EXPECT_EQ(read_byte(app.page(0)).value, 8);
}

TEST(FactFreedPageIsMissing, AfterMadvRemove) {
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  install_and_unmap(faults, app, memfd);
  ASSERT_EQ(::madvise(app.page(0), kPage, MADV_REMOVE), 0);
  expect_missing_and_fillable(faults, app, memfd);
}

TEST(FactFreedPageIsMissing, AfterFallocatePunchHole) {
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  install_and_unmap(faults, app, memfd);
  ASSERT_EQ(memfd.punch(0), 0);
  expect_missing_and_fillable(faults, app, memfd);
}

TEST(FactFreedPageIsMissing, FreeingAPageThatIsStillMappedUnmapsItEverywhere) {
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  const Mapping other = Mapping::of(memfd.fd(), 1);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  ASSERT_EQ(faults.copy(app.page(0), 7, UFFDIO_COPY_MODE_WP), 0);
  ASSERT_EQ(read_byte(other.page(0)).value, 7);
  ASSERT_EQ(::madvise(app.page(0), kPage, MADV_REMOVE), 0);
  EXPECT_EQ(read_byte(app.page(0)).signal, SIGBUS);
  EXPECT_EQ(read_byte(other.page(0)).value, 0) << "not watched: a new page of zeros";
}

}  // namespace
}  // namespace outcore::kernel_test
