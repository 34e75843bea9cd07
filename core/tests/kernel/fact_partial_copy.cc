// Fact: a COPY of several pages stops at the first that is present: EAGAIN, with the bytes done in
// `copy`; the next COPY from there returns EEXIST.
//
// So EAGAIN with a positive count is progress, not a reason to start again.
#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

void expect_stop_at_page_two(const Mapping& app, const Userfault& faults) {
  ASSERT_EQ(faults.copy(app.page(2), 1), 0);
  const Userfault::Copied first = faults.copy_many(app.page(0), 4, 7);
  EXPECT_EQ(first.error, -EAGAIN);
  EXPECT_EQ(first.bytes, int64_t{2 * kPage});
  const Userfault::Copied second = faults.copy_many(app.page(2), 2, 7);
  EXPECT_EQ(second.error, -EEXIST);
  EXPECT_EQ(second.bytes, -EEXIST);
  const Userfault::Copied third = faults.copy_many(app.page(3), 1, 7);
  EXPECT_EQ(third.error, 0);
  EXPECT_EQ(third.bytes, int64_t{kPage});
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(read_byte(app.page(i)).value, i == 2 ? 1 : 7) << i;
}

TEST(FactPartialCopy, OnAMemfd) {
  const Memfd memfd(4);
  const Mapping app = Mapping::of(memfd.fd(), 4);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  expect_stop_at_page_two(app, faults);
}

TEST(FactPartialCopy, OnAnonymousMemory) {
  const Mapping app = Mapping::anonymous(4);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  expect_stop_at_page_two(app, faults);
}

}  // namespace
}  // namespace outcore::kernel_test
