// Fact: a page that was never installed scans as written, unless it was write-protected while it
// was absent.
//
// So only pages that were installed may be scanned.
#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

using ::testing::ElementsAre;

TEST(FactNeverInstalledIsWritten, APageNeverInstalledScansAsWritten) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const Memfd memfd(4);
  const Mapping app = Mapping::of(memfd.fd(), 4);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  ASSERT_EQ(faults.copy(app.page(1), 7, UFFDIO_COPY_MODE_WP), 0);
  EXPECT_THAT(pagemap.written(app), ElementsAre(0, 2, 3));
}

TEST(FactNeverInstalledIsWritten, APageProtectedWhileAbsentDoesNotScanAsWritten) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const Memfd memfd(4);
  const Mapping app = Mapping::of(memfd.fd(), 4);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  ASSERT_EQ(faults.protect(app.page(0), 4, true), 0);
  EXPECT_THAT(pagemap.written(app), ElementsAre());
  EXPECT_EQ(read_byte(app.page(0)).signal, SIGBUS) << "it is still absent";
}

}  // namespace
}  // namespace outcore::kernel_test
