// Fact: a PROT_NONE page raises SIGSEGV with the address and whether it was a write, and a system
// call gets EFAULT; each change of protection may cost mappings, of which there are only
// vm.max_map_count.
//
// The delivery for places where userfaultfd is not allowed depends on this.
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

TEST(FactMprotect, ATouchRaisesSigsegvWithItsAddress) {
  const Memfd memfd(2);
  memfd.write(1, 7);
  const Mapping app = Mapping::of(memfd.fd(), 2, PROT_NONE);
  const Touch read = read_byte(app.page(1) + 100);
  EXPECT_EQ(read.signal, SIGSEGV);
  EXPECT_EQ(read.code, SEGV_ACCERR);
  EXPECT_EQ(read.address, app.page(1) + 100);
  EXPECT_FALSE(read.is_write);
  ASSERT_EQ(::mprotect(app.page(1), kPage, PROT_READ), 0);
  EXPECT_EQ(read_byte(app.page(1)).value, 7);
  const Touch write = write_byte(app.page(1), 1);
  EXPECT_EQ(write.signal, SIGSEGV);
#ifdef __x86_64__
  EXPECT_TRUE(write.is_write);
#endif
}

TEST(FactMprotect, ASystemCallIsEfault) {
  const Memfd memfd(1);
  const Mapping app = Mapping::of(memfd.fd(), 1, PROT_NONE);
  const Memfd file(1);
  EXPECT_EQ(::pread(file.fd(), app.page(0), kPage, 0), -1);
  EXPECT_EQ(errno, EFAULT);
}

TEST(FactMprotect, PastTheLimitOfMappingsItIsEnomemAndTheRangeKeepsItsProtection) {
  size_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  if (limit == 0 || limit > 300'000)
    GTEST_SKIP() << "vm.max_map_count is " << limit << ": too many mappings to try";
  const Mapping app = Mapping::anonymous(2 * limit, PROT_NONE);
  int error = 0;
  size_t at = 0;
  for (; at < app.pages() && error == 0; at += 2)  // no allocation in here: it could need a mapping
    if (::mprotect(app.page(at), kPage, PROT_READ) != 0) error = errno;
  const size_t failed = at - 2;
  // Back to one mapping, before anything else needs one. Joining needs none.
  const int rejoined = ::mprotect(app.page(0), failed * kPage, PROT_NONE);
  EXPECT_EQ(error, ENOMEM);
  EXPECT_LE(failed, limit) << "two mappings for every second page";
  EXPECT_EQ(rejoined, 0);
  EXPECT_EQ(read_byte(app.page(failed)).signal, SIGSEGV);
  EXPECT_EQ(::mprotect(app.page(failed), kPage, PROT_READ), 0) << "there is room again";
}

}  // namespace
}  // namespace outcore::kernel_test
