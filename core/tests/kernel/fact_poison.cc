// Fact: a poisoned page raises SIGBUS at every touch (EFAULT in system calls), until DONTNEED
// clears it or COPY fills it (Linux 6.6). The signal's code is BUS_MCEERR_AR, or BUS_ADRERR on
// kernels without CONFIG_MEMORY_FAILURE.
//
// So with message delivery a failed read reaches the thread that touched the page.
#include <unistd.h>

#include <cerrno>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

void expect_poisoned(const Mapping& app) {
  for (int i = 0; i < 2; ++i) {
    const Touch touch = i == 0 ? read_byte(app.page(0) + 5) : write_byte(app.page(0) + 5, 1);
    EXPECT_EQ(touch.signal, SIGBUS);
    EXPECT_THAT(touch.code, ::testing::AnyOf(BUS_MCEERR_AR, BUS_ADRERR));
    EXPECT_EQ((touch.address - app.page(0)) & ~ptrdiff_t{kPage - 1}, 0);
  }
}

void expect_poisoned_until_cleared(const Mapping& app, const Userfault& faults) {
  ASSERT_EQ(faults.poison(app.page(0)), 0);
  expect_poisoned(app);
  ASSERT_EQ(::madvise(app.page(0), kPage, MADV_DONTNEED), 0);
  ASSERT_EQ(faults.poison(app.page(0)), 0) << "it was absent again";
  expect_poisoned(app);
  ASSERT_EQ(faults.copy(app.page(0), 7), 0);
  EXPECT_EQ(read_byte(app.page(0)).value, 7);
  EXPECT_EQ(faults.poison(app.page(0)), -EEXIST) << "present";
}

TEST(FactPoison, OfAnonymousMemory) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open(Taking::kSignals, os::kUffdFeaturePoison));
  OC_SKIP_IF(faults.watch(app, UFFDIO_REGISTER_MODE_MISSING));
  expect_poisoned_until_cleared(app, faults);
}

TEST(FactPoison, OfAMemfd) {
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1);
  Userfault faults;
  OC_SKIP_IF(faults.open(Taking::kSignals, os::kUffdFeaturePoison | UFFD_FEATURE_MISSING_SHMEM));
  OC_SKIP_IF(faults.watch(app, UFFDIO_REGISTER_MODE_MISSING));
  expect_poisoned_until_cleared(app, faults);
}

TEST(FactPoison, AThreadWaitingForItsPageGetsSigbus) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open(Taking::kMessages, os::kUffdFeaturePoison));
  OC_SKIP_IF(faults.watch(app, UFFDIO_REGISTER_MODE_MISSING));
  Touch touch;
  Sleeper thread(faults, [&] { touch = read_byte(app.page(0)); });
  ASSERT_EQ(faults.next_fault(), app.page(0));
  ASSERT_EQ(faults.poison(app.page(0)), 0);
  thread.join();
  EXPECT_EQ(touch.signal, SIGBUS);
  EXPECT_FALSE(faults.has_message()) << "no second fault";
}

TEST(FactPoison, ClearedByDontneedThePageIsAskedForAgain) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open(Taking::kMessages, os::kUffdFeaturePoison));
  OC_SKIP_IF(faults.watch(app, UFFDIO_REGISTER_MODE_MISSING));
  ASSERT_EQ(faults.poison(app.page(0)), 0);
  ASSERT_EQ(read_byte(app.page(0)).signal, SIGBUS);
  ASSERT_FALSE(faults.has_message());
  ASSERT_EQ(::madvise(app.page(0), kPage, MADV_DONTNEED), 0);
  Touch touch;
  Sleeper thread(faults, [&] { touch = read_byte(app.page(0)); });
  ASSERT_EQ(faults.next_fault(), app.page(0));
  ASSERT_EQ(faults.copy(app.page(0), 7), 0);
  thread.join();
  EXPECT_EQ(touch.value, 7);
}

TEST(FactPoison, ASystemCallOnAPoisonedPageIsEfault) {
  const Mapping app = Mapping::anonymous(1);
  Userfault faults;
  OC_SKIP_IF(faults.open(Taking::kSignals, os::kUffdFeaturePoison));
  OC_SKIP_IF(faults.watch(app, UFFDIO_REGISTER_MODE_MISSING));
  ASSERT_EQ(faults.poison(app.page(0)), 0);
  const Memfd file(1);
  EXPECT_EQ(::pread(file.fd(), app.page(0), kPage, 0), -1);
  EXPECT_EQ(errno, EFAULT);
}

}  // namespace
}  // namespace outcore::kernel_test
