// Late touches: the faulting thread was off the processor until the page it touched had been
// unmapped.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class LateTouchOf : public OnMechanism {
 protected:
  // Simulates what the kernel does for a thread that touched the address some time ago.
  static Touch come_late(const std::byte* address) {
    return touch_of([address] {
      siginfo_t info{};
      info.si_signo = SIGBUS;
      info.si_code = BUS_ADRERR;
      info.si_addr = const_cast<std::byte*>(address);
      ::syscall(SYS_rt_tgsigqueueinfo, ::getpid(), ::gettid(), SIGBUS, &info);
    });
  }
};
OUTCORE_ON_ALL_MECHANISMS(LateTouchOf);

TEST_P(LateTouchOf, IsTriedAgainOnceAfterItsRegionWasUnmapped) {
  Region region = map(file_of(4 * page_bytes()), Access::kReadWrite).value();
  const std::byte* at = region.data() + page_bytes();
  EXPECT_EQ(read_of(at).signal, 0);
  ASSERT_TRUE(region.unmap().ok());
  EXPECT_EQ(come_late(at).signal, 0) << "what is there now may answer it";
  EXPECT_EQ(come_late(at).signal, SIGBUS) << "nothing was unmapped since: it is the program's";
  EXPECT_EQ(come_late(at).signal, SIGBUS);
}

TEST_P(LateTouchOf, IsNotTriedForEverWhereOthersMapAndUnmapAllTheTime) {
  Region region = map(file_of(4 * page_bytes()), Access::kReadWrite).value();
  const std::byte* at = region.data();
  ASSERT_TRUE(region.unmap().ok());
  const std::string other = file_of(page_bytes());
  int tries = 0;
  for (; tries < 100 && come_late(at).signal == 0; ++tries) {
    Region there = map(other, Access::kReadOnly).value();
    ASSERT_TRUE(there.unmap().ok());
  }
  EXPECT_GT(tries, 1);
  EXPECT_LT(tries, 100);
}

}  // namespace
}  // namespace outcore
