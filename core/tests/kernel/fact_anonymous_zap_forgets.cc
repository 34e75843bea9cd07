// Fact: on anonymous memory a zap forgets whether the page was written; no later scan can tell.
//
// So private frames are protected and scanned before they are freed, never after.
#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

TEST(FactAnonymousZapForgets, AfterTheZapWrittenAndCleanPagesScanAlike) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const Mapping app = Mapping::anonymous(4);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  for (size_t i = 0; i < 4; ++i) ASSERT_EQ(faults.copy(app.page(i), 7, UFFDIO_COPY_MODE_WP), 0);
  ASSERT_EQ(faults.protect(app.page(2), 1, false), 0);
  ASSERT_EQ(write_byte(app.page(2), 9).signal, 0);
  ASSERT_THAT(pagemap.written(app), ::testing::ElementsAre(2));
  ASSERT_EQ(::madvise(app.page(0), app.size_bytes(), MADV_DONTNEED), 0);
  EXPECT_THAT(pagemap.written(app), ::testing::ElementsAre(0, 1, 2, 3));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(pagemap.is_protected(app.page(i)));
    EXPECT_FALSE(pagemap.is_present(app.page(i)));
  }
}

}  // namespace
}  // namespace outcore::kernel_test
