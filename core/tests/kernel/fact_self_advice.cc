// Fact: process_madvise on the own process unmaps (DONTNEED) and frees (REMOVE) many ranges in one
// call (Linux 6.13).
#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

constexpr size_t kRangesMax = 1024;  // UIO_MAXIOV

std::vector<iovec> even_pages(const Mapping& app) {
  std::vector<iovec> ranges;
  for (size_t i = 0; i < app.pages(); i += 2) ranges.push_back({app.page(i), kPage});
  return ranges;
}

TEST(FactSelfAdvice, OneCallUnmapsExactlyTheRangesGiven) {
  OC_SKIP_IF(lacks_self_advice(MADV_DONTNEED));
  const Mapping app = Mapping::anonymous(2 * kRangesMax);
  for (size_t i = 0; i < app.pages(); ++i) *app.page(i) = 7;
  ASSERT_EQ(advise_self(even_pages(app), MADV_DONTNEED), ssize_t{kRangesMax * kPage});
  for (size_t i = 0; i < app.pages(); ++i) ASSERT_EQ(*app.page(i), i % 2 == 0 ? 0 : 7) << i;
}

TEST(FactSelfAdvice, OneCallFreesExactlyTheRangesGiven) {
  OC_SKIP_IF(lacks_self_advice(MADV_REMOVE));
  const Memfd memfd(2 * kRangesMax);
  const Mapping app = Mapping::of(memfd.fd(), 2 * kRangesMax);
  for (size_t i = 0; i < app.pages(); ++i) *app.page(i) = 7;
  ASSERT_EQ(advise_self(even_pages(app), MADV_REMOVE), ssize_t{kRangesMax * kPage});
  for (size_t i = 0; i < app.pages(); ++i) ASSERT_EQ(memfd.holds(i), i % 2 == 1) << i;
}

TEST(FactSelfAdvice, MoreThan1024RangesAreRefused) {
  OC_SKIP_IF(lacks_self_advice(MADV_DONTNEED));
  const Mapping app = Mapping::anonymous(2 * kRangesMax + 2);
  EXPECT_EQ(advise_self(even_pages(app), MADV_DONTNEED), -EINVAL);
}

}  // namespace
}  // namespace outcore::kernel_test
