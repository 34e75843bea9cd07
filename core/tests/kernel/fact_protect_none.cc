// Fact: a PROT_NONE mapping can be registered and filled, and a later mprotect of all or part of it
// keeps the registration.
//
// So a region appears in one step: it is mapped without access, registered, then made accessible.
#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

void expect_watched_after_mprotect(const Mapping& app, const Userfault& faults) {
  EXPECT_EQ(read_byte(app.page(0)).signal, SIGSEGV);
  ASSERT_EQ(faults.copy(app.page(1), 7), 0) << "filled before it is accessible";
  ASSERT_EQ(::mprotect(app.page(0), 2 * kPage, kReadWrite), 0);
  EXPECT_EQ(read_byte(app.page(0)).signal, SIGBUS) << "absent and watched";
  EXPECT_EQ(read_byte(app.page(1)).value, 7);
  ASSERT_EQ(faults.copy(app.page(0), 8), 0);
  EXPECT_EQ(write_byte(app.page(0), 9).signal, 0);
  EXPECT_EQ(read_byte(app.page(3)).signal, SIGSEGV) << "the rest is not accessible yet";
  ASSERT_EQ(::mprotect(app.page(2), 2 * kPage, PROT_READ), 0);
  EXPECT_EQ(read_byte(app.page(3)).signal, SIGBUS);
}

TEST(FactProtectNone, MprotectKeepsTheWatchOfAMemfd) {
  const Memfd memfd(4);
  const Mapping app = Mapping::of(memfd.fd(), 4, PROT_NONE);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app));
  expect_watched_after_mprotect(app, faults);
}

TEST(FactProtectNone, MprotectKeepsTheWatchOfAnonymousMemory) {
  const Mapping app = Mapping::anonymous(4, PROT_NONE);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app));
  expect_watched_after_mprotect(app, faults);
}

}  // namespace
}  // namespace outcore::kernel_test
