// Fact: ZEROPAGE fills with zeros: on anonymous memory it maps the shared zero page, which takes no
// memory until it is written and can be write-protected later; on a memfd it allocates a page.
#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

TEST(FactZeropage, OnAnonymousMemoryItReadsZeroAndBecomesAPageOfItsOwnWhenWritten) {
  const Mapping app = Mapping::anonymous(2);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(faults.zero(app.page(i)), 0);
    EXPECT_EQ(read_byte(app.page(i)).signal, 0);
    EXPECT_EQ(read_byte(app.page(i)).value, 0);
  }
  EXPECT_EQ(write_byte(app.page(0), 9).signal, 0) << "the kernel itself copies it";
  EXPECT_EQ(read_byte(app.page(0)).value, 9);
  EXPECT_EQ(read_byte(app.page(1)).value, 0);
}

TEST(FactZeropage, OnAnonymousMemoryItCanBeWriteProtectedAfterwards) {
  const Pagemap pagemap;
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  ASSERT_EQ(faults.zero(app.page(0)), 0);
  EXPECT_FALSE(pagemap.is_protected(app.page(0)));
  ASSERT_EQ(faults.protect(app.page(0), 1, true), 0);
  EXPECT_TRUE(pagemap.is_protected(app.page(0)));
  EXPECT_EQ(write_byte(app.page(0), 9).signal, SIGBUS);
  ASSERT_EQ(faults.protect(app.page(0), 1, false), 0);
  EXPECT_EQ(write_byte(app.page(0), 9).signal, 0);
  EXPECT_EQ(read_byte(app.page(0)).value, 9);
}

TEST(FactZeropage, OnAMemfdItIsAPageOfTheMemfd) {
  const Memfd memfd(2);
  const Mapping app = Mapping::of(memfd.fd(), 2);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  ASSERT_EQ(faults.zero(app.page(1)), 0);
  EXPECT_EQ(read_byte(app.page(1)).signal, 0);
  EXPECT_EQ(read_byte(app.page(1)).value, 0);
  EXPECT_FALSE(memfd.holds(0));
  EXPECT_TRUE(memfd.holds(1));
}

TEST(FactZeropage, OnAMemfdItScansAsWritten) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  ASSERT_EQ(faults.zero(app.page(0)), 0);
  EXPECT_THAT(pagemap.written(app), ::testing::ElementsAre(0));
}

}  // namespace
}  // namespace outcore::kernel_test
