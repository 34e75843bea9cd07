// Fact: a page of a memfd under WP_ASYNC still tells after unmapping whether it was written.
//
// Eviction without races and without write faults depends on this: unmap, then ask, then write
// back.
#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

using ::testing::ElementsAre;

TEST(FactZapKeepsWritten, AZappedPageOfAMemfdKeepsItsWrittenBit) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const Memfd memfd(8);
  const Mapping app = Mapping::of(memfd.fd(), 8);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  for (size_t i = 0; i < 8; ++i) ASSERT_EQ(faults.copy(app.page(i), 7, UFFDIO_COPY_MODE_WP), 0);
  EXPECT_THAT(pagemap.written(app), ElementsAre());
  for (const size_t i : {2, 5}) ASSERT_EQ(write_byte(app.page(i), 9).signal, 0);
  ASSERT_EQ(::madvise(app.page(0), app.size_bytes(), MADV_DONTNEED), 0);
  EXPECT_THAT(pagemap.written(app), ElementsAre(2, 5));
}

TEST(FactZapKeepsWritten, AZappedPageCanNeitherBeReadNorWrittenButItsBytesAreInTheMemfd) {
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  ASSERT_EQ(faults.copy(app.page(0), 7, UFFDIO_COPY_MODE_WP), 0);
  ASSERT_EQ(write_byte(app.page(0), 9).signal, 0);
  ASSERT_EQ(::madvise(app.page(0), kPage, MADV_DONTNEED), 0);
  EXPECT_EQ(read_byte(app.page(0)).signal, SIGBUS);
  EXPECT_EQ(write_byte(app.page(0), 1).signal, SIGBUS);
  EXPECT_EQ(memfd.first_byte(0), 9);
}

}  // namespace
}  // namespace outcore::kernel_test
