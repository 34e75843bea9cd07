// Fact: under synchronous write protection the pagemap tells which anonymous pages may be written:
// bit 57 of /proc/self/pagemap (Linux 5.14, so also on 6.1), and PAGEMAP_SCAN (6.7) alike.
//
// Private frames use this to find out what is dirty.
#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

using ::testing::ElementsAre;

TEST(FactAnonymousProtectionIsVisible, BitFiftySevenIsSetWhereThePageIsProtected) {
  const Pagemap pagemap;
  const Mapping app = Mapping::anonymous(4);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  for (size_t i = 0; i < 3; ++i) ASSERT_EQ(faults.copy(app.page(i), 7, UFFDIO_COPY_MODE_WP), 0);
  ASSERT_EQ(faults.protect(app.page(1), 1, false), 0);
  EXPECT_TRUE(pagemap.is_present(app.page(0)) && pagemap.is_protected(app.page(0)));
  EXPECT_TRUE(pagemap.is_present(app.page(1)) && !pagemap.is_protected(app.page(1)));
  EXPECT_TRUE(pagemap.is_present(app.page(2)) && pagemap.is_protected(app.page(2)));
  EXPECT_FALSE(pagemap.is_present(app.page(3)) || pagemap.is_protected(app.page(3)));
}

TEST(FactAnonymousProtectionIsVisible, PagemapScanSaysTheSame) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const Mapping app = Mapping::anonymous(4);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  for (size_t i = 0; i < 4; ++i) ASSERT_EQ(faults.copy(app.page(i), 7, UFFDIO_COPY_MODE_WP), 0);
  ASSERT_EQ(faults.protect(app.page(1), 2, false), 0);
  EXPECT_THAT(pagemap.written(app), ElementsAre(1, 2));
}

TEST(FactAnonymousProtectionIsVisible, AProtectedPageFaultsOnWriteOnlyAndAgainOnceProtected) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  ASSERT_EQ(faults.copy(app.page(0), 7, UFFDIO_COPY_MODE_WP), 0);
  EXPECT_EQ(read_byte(app.page(0)).value, 7);
  EXPECT_EQ(write_byte(app.page(0), 9).signal, SIGBUS);
  ASSERT_EQ(faults.protect(app.page(0), 1, false), 0);
  EXPECT_EQ(write_byte(app.page(0), 9).signal, 0);
  ASSERT_EQ(faults.protect(app.page(0), 1, true), 0);
  EXPECT_EQ(write_byte(app.page(0), 10).signal, SIGBUS);
  EXPECT_EQ(read_byte(app.page(0)).value, 9);
}

}  // namespace
}  // namespace outcore::kernel_test
