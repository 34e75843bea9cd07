// Fact: PAGEMAP_SCAN can write-protect what it reports in the same step (Linux 6.7): each write is
// reported by this scan or by the next.
//
// Flushing resident pages depends on this.
#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

using ::testing::ElementsAre;

TEST(FactScanAndProtect, APageIsReportedOncePerWrite) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const Memfd memfd(4);
  const Mapping app = Mapping::of(memfd.fd(), 4);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  for (size_t i = 0; i < 4; ++i) ASSERT_EQ(faults.copy(app.page(i), 7, UFFDIO_COPY_MODE_WP), 0);
  for (const size_t i : {1, 3}) ASSERT_EQ(write_byte(app.page(i), 9).signal, 0);
  EXPECT_THAT(pagemap.written_then_protect(app), ElementsAre(1, 3));
  EXPECT_THAT(pagemap.written_then_protect(app), ElementsAre());
  EXPECT_EQ(write_byte(app.page(3), 10).signal, 0) << "protected, and yet no fault: WP_ASYNC";
  EXPECT_THAT(pagemap.written_then_protect(app), ElementsAre(3));
}

TEST(FactScanAndProtect, NoWriteOfARunningThreadFallsBetweenTwoScans) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  ASSERT_EQ(faults.copy(app.page(0), 0, UFFDIO_COPY_MODE_WP), 0);
  constexpr uint32_t kWrites = 200'000;
  auto* counter = reinterpret_cast<std::atomic<uint32_t>*>(app.page(0));
  uint32_t saved = 0;
  Sleeper writer(faults, [&] {
    for (uint32_t i = 1; i <= kWrites; ++i) counter->store(i);
  });
  // A write-back: unreported pages need not be copied.
  while (!writer.has_finished())
    if (!pagemap.written_then_protect(app).empty()) saved = counter->load();
  writer.join();
  if (!pagemap.written_then_protect(app).empty()) saved = counter->load();
  EXPECT_EQ(saved, kWrites);
}

TEST(FactScanAndProtect, UnmappedPagesAreReportedButAnAbsentPageStaysAbsent) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const Memfd memfd(2);
  const Mapping app = Mapping::of(memfd.fd(), 2);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  ASSERT_EQ(faults.copy(app.page(0), 7, UFFDIO_COPY_MODE_WP), 0);
  ASSERT_EQ(write_byte(app.page(0), 9).signal, 0);
  ASSERT_EQ(::madvise(app.page(0), kPage, MADV_DONTNEED), 0);
  EXPECT_THAT(pagemap.written_then_protect(app), ElementsAre(0, 1));
  EXPECT_THAT(pagemap.written(app), ElementsAre()) << "markers stand in both places";
  EXPECT_EQ(read_byte(app.page(1)).signal, SIGBUS);
  EXPECT_FALSE(memfd.holds(1));
}

}  // namespace
}  // namespace outcore::kernel_test
