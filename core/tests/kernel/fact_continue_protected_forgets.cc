// Fact: CONTINUE with write protection forgets that the page was written; without protection the
// page counts as written.
//
// So a rescue must keep the written bits itself, or map without protection.
#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

using ::testing::ElementsAre;

TEST(FactContinueProtectedForgets, OfTwoWrittenPagesTheOneContinuedWithProtectionForgets) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const Memfd memfd(2);
  const Mapping app = Mapping::of(memfd.fd(), 2);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(faults.copy(app.page(i), 7, UFFDIO_COPY_MODE_WP), 0);
    ASSERT_EQ(write_byte(app.page(i), 9).signal, 0);
  }
  ASSERT_EQ(::madvise(app.page(0), app.size_bytes(), MADV_DONTNEED), 0);
  ASSERT_THAT(pagemap.written(app), ElementsAre(0, 1));
  ASSERT_EQ(faults.resume(app.page(0), true), 0);
  ASSERT_EQ(faults.resume(app.page(1), false), 0);
  EXPECT_THAT(pagemap.written(app), ElementsAre(1));
  EXPECT_EQ(read_byte(app.page(0)).value, 9) << "the bytes themselves are kept";
}

TEST(FactContinueProtectedForgets, ACleanPageContinuedWithoutProtectionCountsAsWritten) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  ASSERT_EQ(faults.copy(app.page(0), 7, UFFDIO_COPY_MODE_WP), 0);
  ASSERT_EQ(::madvise(app.page(0), kPage, MADV_DONTNEED), 0);
  ASSERT_THAT(pagemap.written(app), ElementsAre());
  ASSERT_EQ(faults.resume(app.page(0), false), 0);
  EXPECT_THAT(pagemap.written(app), ElementsAre(0));
}

TEST(FactContinueProtectedForgets, APageContinuedThenUnprotectedCountsAsWritten) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const Memfd memfd(2);
  const Mapping app = Mapping::of(memfd.fd(), 2);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  for (size_t i = 0; i < 2; ++i) {
    memfd.write(i, 7);
    ASSERT_EQ(faults.resume(app.page(i), true), 0);
  }
  ASSERT_THAT(pagemap.written(app), ElementsAre());
  ASSERT_EQ(faults.protect(app.page(1), 1, false), 0);
  EXPECT_THAT(pagemap.written(app), ElementsAre(1));
}

}  // namespace
}  // namespace outcore::kernel_test
