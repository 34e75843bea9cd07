// Fact: COPY and CONTINUE on a present page return EEXIST and wake nobody.
//
// So with message delivery WAKE must follow an EEXIST; otherwise a thread that faulted meanwhile
// sleeps forever.
#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

TEST(FactExistNeedsWake, AThreadSleepsThroughEexistAndGoesOnAfterWake) {
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  Userfault faults;
  OC_SKIP_IF(faults.open_shared(app, Taking::kMessages));
  char seen = 0;
  Sleeper thread(faults, [&] { seen = *static_cast<volatile char*>(app.page(0)); });
  ASSERT_EQ(faults.next_fault(), app.page(0));
  // A fill by another thread that wakes nobody: the page is present, and the thread still sleeps.
  ASSERT_EQ(faults.copy(app.page(0), 7, UFFDIO_COPY_MODE_DONTWAKE), 0);
  EXPECT_TRUE(thread.is_asleep());
  EXPECT_EQ(faults.copy(app.page(0), 8), -EEXIST);
  EXPECT_TRUE(thread.is_asleep());
  EXPECT_EQ(faults.resume(app.page(0), false), -EEXIST);
  EXPECT_TRUE(thread.is_asleep());
  ASSERT_EQ(faults.wake(app.page(0)), 0);
  thread.join();
  EXPECT_EQ(seen, 7);
}

TEST(FactExistNeedsWake, AnonymousMemoryBehavesAlike) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open_private(app, Taking::kMessages));
  char seen = 0;
  Sleeper thread(faults, [&] { seen = *static_cast<volatile char*>(app.page(0)); });
  ASSERT_EQ(faults.next_fault(), app.page(0));
  ASSERT_EQ(faults.copy(app.page(0), 7, UFFDIO_COPY_MODE_DONTWAKE), 0);
  EXPECT_EQ(faults.copy(app.page(0), 8), -EEXIST);
  EXPECT_TRUE(thread.is_asleep());
  ASSERT_EQ(faults.wake(app.page(0)), 0);
  thread.join();
  EXPECT_EQ(seen, 7);
}

}  // namespace
}  // namespace outcore::kernel_test
