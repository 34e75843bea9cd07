// Fact: CONTINUE on a page that is still mapped returns EEXIST and changes nothing; the zap that
// follows removes the page.
//
// So a page may be rescued only after its unmapping is complete: Unmapping and Leaving are two
// states.
#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

TEST(FactContinueBeforeZap, ContinueBeforeTheZapIsEexistAndTheZapStillUnmaps) {
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  ASSERT_EQ(faults.copy(app.page(0), 7, UFFDIO_COPY_MODE_WP), 0);
  EXPECT_EQ(faults.resume(app.page(0), false), -EEXIST);
  ASSERT_EQ(::madvise(app.page(0), kPage, MADV_DONTNEED), 0);
  EXPECT_EQ(read_byte(app.page(0)).signal, SIGBUS);
  EXPECT_EQ(faults.resume(app.page(0), false), 0);
  EXPECT_EQ(read_byte(app.page(0)).value, 7);
}

TEST(FactContinueBeforeZap, ContinueOfAPageThatIsNotInTheMemfdIsEfault) {
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  EXPECT_EQ(faults.resume(app.page(0), false), -EFAULT);
}

}  // namespace
}  // namespace outcore::kernel_test
