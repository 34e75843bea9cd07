// Fact: unmapping neighbours as one range, page by page, or as a batch leaves the same page table
// behind.
//
// So on kernels without batches (before 6.13) neighbours are joined, with the same protocol.
#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

constexpr size_t kPages = 16;

// Pages 4 … 11 of 16, every third page written, unmapped in one of three ways.
std::vector<size_t> written_after(const std::function<void(const Mapping&)>& unmap) {
  const Pagemap pagemap;
  const Memfd memfd(kPages);
  const Mapping app = Mapping::of(memfd.fd(), kPages);
  Userfault faults;
  EXPECT_EQ(faults.open_shared(app), "");
  for (size_t i = 0; i < kPages; ++i) {
    EXPECT_EQ(faults.copy(app.page(i), 7, UFFDIO_COPY_MODE_WP), 0);
    if (i % 3 == 0) {
      EXPECT_EQ(write_byte(app.page(i), 9).signal, 0);
    }
  }
  unmap(app);
  for (size_t i = 0; i < kPages; ++i)
    EXPECT_EQ(read_byte(app.page(i)).signal, i >= 4 && i < 12 ? SIGBUS : 0) << i;
  return pagemap.written(app);
}

void join(const Mapping& app) { EXPECT_EQ(::madvise(app.page(4), 8 * kPage, MADV_DONTNEED), 0); }

void one_by_one(const Mapping& app) {
  for (size_t i = 4; i < 12; ++i) EXPECT_EQ(::madvise(app.page(i), kPage, MADV_DONTNEED), 0);
}

void batch(const Mapping& app) {
  std::vector<iovec> ranges;
  for (size_t i = 4; i < 12; ++i) ranges.push_back({app.page(i), kPage});
  EXPECT_EQ(advise_self(ranges, MADV_DONTNEED), ssize_t{8 * kPage});
}

std::string lacks_shared_frames() {
  const std::string reason = Pagemap().lacks_scan();
  if (!reason.empty()) return reason;
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  return Userfault().open_shared(app);
}

TEST(FactJoinedZap, JoinedEqualsOneByOne) {
  OC_SKIP_IF(lacks_shared_frames());
  EXPECT_THAT(written_after(join), ::testing::ElementsAre(0, 3, 6, 9, 12, 15));
  EXPECT_THAT(written_after(one_by_one), ::testing::ElementsAre(0, 3, 6, 9, 12, 15));
}

TEST(FactJoinedZap, BatchedEqualsJoined) {
  OC_SKIP_IF(lacks_shared_frames());
  OC_SKIP_IF(lacks_self_advice(MADV_DONTNEED));
  EXPECT_EQ(written_after(batch), written_after(join));
}

}  // namespace
}  // namespace outcore::kernel_test
