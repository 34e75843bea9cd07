// Fact: written bits survive a zap of less than the range of a page table (2 MiB). A zap of the
// whole range may free the table (Linux 6.14 and later with CONFIG_PT_RECLAIM) if every page in it
// was written, and PAGEMAP_SCAN then reports nothing.
//
// So pages are unmapped in pieces that never cover a whole table.
#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

constexpr size_t kTable = 512;  // pages

// Writes all pages of one table, then unmaps them in pieces; returns how many are still reported as
// written.
size_t written_after_zaps_of(size_t pages_each) {
  const Pagemap pagemap;
  const Memfd memfd(2 * kTable);
  const Mapping app = Mapping::of(memfd.fd(), 2 * kTable);
  Userfault faults;
  EXPECT_EQ(faults.open_shared(app), "");
  const size_t misfit = reinterpret_cast<uintptr_t>(app.page(0)) / kPage % kTable;
  const size_t first = (kTable - misfit) % kTable;
  for (size_t i = first; i < first + kTable; ++i) {
    EXPECT_EQ(faults.copy(app.page(i), 7, UFFDIO_COPY_MODE_WP), 0);
    EXPECT_EQ(write_byte(app.page(i), 9).signal, 0);
  }
  for (size_t i = first; i < first + kTable; i += pages_each)
    EXPECT_EQ(::madvise(app.page(i), pages_each * kPage, MADV_DONTNEED), 0);
  // Pages that were never mapped count as written, too, so only the table's own pages are counted.
  const std::vector<size_t> written = pagemap.written(app);
  return static_cast<size_t>(std::count_if(
      written.begin(), written.end(), [&](size_t i) { return i >= first && i < first + kTable; }));
}

TEST(FactZapOfATable, InHalvesKeepsWhatWasWritten) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  EXPECT_EQ(written_after_zaps_of(kTable / 2), kTable);
  EXPECT_EQ(written_after_zaps_of(1), kTable);
}

TEST(FactZapOfATable, AsAWholeKeepsAllOrNothing) {
  const Pagemap pagemap;
  OC_SKIP_IF(pagemap.lacks_scan());
  const size_t written = written_after_zaps_of(kTable);
  RecordProperty("written", static_cast<int>(written));
  EXPECT_THAT(written, ::testing::AnyOf(size_t{0}, kTable));
}

}  // namespace
}  // namespace outcore::kernel_test
