// Fact: the userfaultfd does not watch a forked child: the child reads zeros where the parent's
// page is absent, and inserts them into the parent's memfd. With MADV_DONTFORK the child has a hole
// there, in which it may map something else.

#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

TEST(FactFork, AChildWithoutPrecautionsReadsZerosAndPlantsThemInTheParentsMemfd) {
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  ASSERT_EQ(read_byte(app.page(0)).signal, SIGBUS) << "absent in the parent";
  const int status = status_of_child([&] {
    const Touch read = read_byte(app.page(0));
    return read.signal == 0 && read.value == 0 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(memfd.holds(0));
  EXPECT_EQ(faults.copy(app.page(0), 7), -EEXIST) << "the parent finds the child's page in the way";
}

TEST(FactFork, AChildWithoutPrecautionsReadsZerosFromAbsentAnonymousPages) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  const int status = status_of_child([&] {
    const Touch read = read_byte(app.page(0));
    return read.signal == 0 && read.value == 0 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST(FactFork, WithDontforkTheChildHasAHoleThatItMayFill) {
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  ASSERT_EQ(::madvise(app.page(0), kPage, MADV_DONTFORK), 0);
  const int status = status_of_child([&] {
    const Touch read = read_byte(app.page(0));
    if (read.signal != SIGSEGV || read.code != SEGV_MAPERR) return 1;
    void* fresh = ::mmap(app.page(0), kPage, kReadWrite,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return fresh == app.page(0) ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(memfd.holds(0));
}

}  // namespace
}  // namespace outcore::kernel_test
