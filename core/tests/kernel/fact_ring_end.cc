// Fact: closing an io_uring interrupts the thread that created it, some milliseconds later: its
// epoll_wait returns EINTR, its copy_file_range a part. A ring without entries is refused with
// EINVAL if rings are permitted.
//
// So Outcore finds out whether rings are available without creating one: programs under `outcore
// run` would see interrupted calls without a reason.
#include <liburing.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/tests/kernel/kernel_fixture.h"

namespace outcore::kernel_test {
namespace {

std::string open_ring(io_uring* ring) {
  const int result = ::io_uring_queue_init(2, ring, 0);
  return result == 0 ? "" : std::string("io_uring is not to be had: ") + std::strerror(-result);
}

TEST(FactRingEnd, InterruptsTheThreadThatMadeIt) {
  constexpr int kRings = 20, kWaitMs = 100;
  const int queue = ::epoll_create1(EPOLL_CLOEXEC);
  ASSERT_GE(queue, 0);
  int interrupted = 0;
  for (int i = 0; i < kRings; ++i) {
    io_uring ring;
    OC_SKIP_IF(open_ring(&ring));
    ::io_uring_queue_exit(&ring);
    epoll_event event;
    if (::epoll_wait(queue, &event, 1, kWaitMs) < 0 && errno == EINTR) ++interrupted;
  }
  ::close(queue);
  EXPECT_GT(interrupted, 0);
}

TEST(FactRingEnd, ARingWithoutEntriesIsRefused) {
  io_uring ring;
  OC_SKIP_IF(open_ring(&ring));
  ::io_uring_queue_exit(&ring);
  io_uring_params none = {};
  EXPECT_EQ(::io_uring_setup(0, &none), -EINVAL);
}

}  // namespace
}  // namespace outcore::kernel_test
