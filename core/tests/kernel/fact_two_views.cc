// Fact: views of one memfd share pages, but each view is mapped, unmapped and scanned separately.
#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

using ::testing::ElementsAre;

class FactTwoViews : public ::testing::Test {
 protected:
  FactTwoViews() : memfd_(2), a_(Mapping::of(memfd_.fd(), 2)), b_(Mapping::of(memfd_.fd(), 2)) {}
  std::string open() {
    std::string reason = pagemap_.lacks_scan();
    if (reason.empty()) reason = faults_.open_shared(a_);
    if (reason.empty())
      reason = faults_.watch(
          b_, UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP);
    return reason;
  }
  Memfd memfd_;
  Mapping a_, b_;
  Pagemap pagemap_;
  Userfault faults_;
};

TEST_F(FactTwoViews, PwriteThenContinueMapsThePageInOneViewAndTheOtherFaultsForItself) {
  OC_SKIP_IF(open());
  memfd_.write(0, 7);
  ASSERT_EQ(faults_.resume(a_.page(0), true), 0);
  EXPECT_EQ(read_byte(a_.page(0)).value, 7);
  EXPECT_EQ(read_byte(b_.page(0)).signal, SIGBUS) << "a minor fault";
  ASSERT_EQ(faults_.resume(b_.page(0), true), 0);
  EXPECT_EQ(read_byte(b_.page(0)).value, 7);
  EXPECT_EQ(write_byte(a_.page(0), 9).signal, 0);
  EXPECT_EQ(read_byte(b_.page(0)).value, 9) << "the same page";
}

TEST_F(FactTwoViews, AWriteScansInTheViewThatItCameThrough) {
  OC_SKIP_IF(open());
  for (size_t i = 0; i < 2; ++i) {
    memfd_.write(i, 7);
    ASSERT_EQ(faults_.resume(a_.page(i), true), 0);
    ASSERT_EQ(faults_.resume(b_.page(i), true), 0);
  }
  ASSERT_EQ(write_byte(a_.page(0), 9).signal, 0);
  ASSERT_EQ(write_byte(b_.page(1), 9).signal, 0);
  EXPECT_THAT(pagemap_.written(a_), ElementsAre(0));
  EXPECT_THAT(pagemap_.written(b_), ElementsAre(1));
}

TEST_F(FactTwoViews, UnmappingOneViewLeavesTheOtherWritableAndFreeingUnmapsBoth) {
  OC_SKIP_IF(open());
  memfd_.write(0, 7);
  ASSERT_EQ(faults_.resume(a_.page(0), true), 0);
  ASSERT_EQ(faults_.resume(b_.page(0), true), 0);
  ASSERT_EQ(::madvise(a_.page(0), kPage, MADV_DONTNEED), 0);
  EXPECT_EQ(write_byte(b_.page(0), 9).signal, 0);
  ASSERT_EQ(::madvise(a_.page(0), kPage, MADV_REMOVE), 0);
  EXPECT_EQ(read_byte(b_.page(0)).signal, SIGBUS);
}

TEST_F(FactTwoViews, FreeingAPageThatIsMappedElsewhereForgetsNoWrittenBit) {
  OC_SKIP_IF(open());
  for (size_t i = 0; i < 2; ++i) {
    memfd_.write(i, 7);
    ASSERT_EQ(faults_.resume(a_.page(i), true), 0);
  }
  ASSERT_EQ(write_byte(a_.page(1), 9).signal, 0);
  ASSERT_EQ(::madvise(b_.page(0), b_.size_bytes(), MADV_REMOVE), 0);
  EXPECT_THAT(pagemap_.written(a_), ElementsAre(1)) << "the marker of a clean page stays";
}

}  // namespace
}  // namespace outcore::kernel_test
