// What is written in a buffer and cannot be stored leaves room for others.
#include <signal.h>
#include <sys/wait.h>

#include "core/buffer/buffer.h"
#include "core/os/wait.h"
#include "core/tests/buffer/cells.h"
#include "core/tests/buffer/writes.h"

namespace outcore {
namespace {

using namespace scene;
using namespace of_job;

class WritesStopped : public of_job::Writes {
 protected:
  // A writer that has written as much as it may is stopped; `holds`: another member has half of the
  // limit for itself. Who reads goes on, and whoever writes, too.
  static void expect_room_beside_a_stopped_writer(bool holds) {
    constexpr uint64_t kWritten = kLimit / kPage, kPages = 4 * kWritten;
    Job job(kPages);
    auto& shared = job.shared();
    const pid_t holder = job.begin([&] {
      const auto joined = buffer::Buffer::join("job", kLimit);
      if (!joined || (holds && !joined.value()->acquire_private(kLimit / 2, 1'000'000'000)))
        return kNoRuntime;
      shared.gate.store(1);
      while (shared.gate.load() < 3)
        os::wait_between_processes(&shared.gate, shared.gate.load(), 1'000'000);
      return 0;
    });
    wait_for_child(shared.gate, 1, holder);
    const auto read_and_write = [&](Runtime&, Region& region) {
      shared.arrived.store(1);
      wait_for(shared.gate, 2);
      for (uint64_t page = kWritten; page < 2 * kWritten; ++page)
        cells(region)[page * 512].store(page);
      for (uint64_t page = 2 * kWritten; page < kPages; ++page)
        if (cells(region)[page * 512].load() != Job::word(page * 512)) return kWrong;
      for (uint64_t page = kWritten; page < 2 * kWritten; ++page)
        if (cells(region)[page * 512].load() != page) return kWrong;
      shared.is_over.store(1);
      wait_for(shared.is_over, 2);  // an end waits for a page that the stopped one is just storing
      return 0;
    };
    const pid_t other = begin(job, Access::kReadWrite, read_and_write);
    wait_for_child(shared.arrived, 1, other);  // who is stopped may have the lock of files
    const pid_t writer = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
      for (uint64_t page = 0; page < kWritten; ++page) cells(region)[page * 512].store(page);
      ::raise(SIGSTOP);
      for (uint64_t page = 0; page < kWritten; ++page)
        if (cells(region)[page * 512].load() != page) return kWrong;
      return 0;
    });
    int status = 0;
    EXPECT_EQ(::waitpid(writer, &status, WUNTRACED), writer);
    EXPECT_TRUE(WIFSTOPPED(status));
    shared.gate.store(2);
    wait_for_child(shared.is_over, 1, other);
    ::kill(writer, SIGCONT);
    shared.is_over.store(2);
    EXPECT_EQ(job.end(other), 0);
    EXPECT_EQ(job.end(writer), 0);
    shared.gate.store(3);
    EXPECT_EQ(job.end(holder), 0);
    const std::vector<uint64_t> stored = words_of(job.path());
    for (uint64_t page = 0; page < kPages; ++page)
      ASSERT_EQ(stored[page * 512], page < 2 * kWritten ? page : Job::word(page * 512)) << page;
  }
};
INSTANTIATE_TEST_SUITE_P(By, WritesStopped,
                         testing::Values(Delivery::kInThread, Delivery::kMessages),
                         name_of_delivery);

TEST_P(WritesStopped, OthersHaveRoom) { expect_room_beside_a_stopped_writer(false); }

TEST_P(WritesStopped, OthersHaveRoomBesideOneWhoHasHalfForItself) {
  expect_room_beside_a_stopped_writer(true);
}

// Pinned pages do not become clean, and count for nobody: who has written many of them still
// writes others, and so does its neighbour.
TEST_P(WritesStopped, PinnedPagesThatAreWrittenLeaveRoomForWriters) {
  constexpr uint64_t kPinned = kLimit * 3 / 8 / kPage, kEach = 2 * kLimit / kPage;
  constexpr uint64_t kPages = kPinned + 2 * kEach;
  Job job(kPages);
  auto& shared = job.shared();
  const auto write = [](const Region& region, uint64_t first, uint64_t end) {
    for (uint64_t page = first; page < end; ++page) cells(region)[page * 512].store(page);
    for (uint64_t page = first; page < end; ++page)
      if (cells(region)[page * 512].load() != page) return kWrong;
    return 0;
  };
  const pid_t pinning = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
    if (!region.pin(0, kPinned * kPage).ok()) return kNoRegion;
    if (const int code = write(region, 0, kPinned); code != 0) return code;
    shared.gate.store(1);
    if (const int code = write(region, kPinned, kPinned + kEach); code != 0) return code;
    wait_for(shared.is_over, 1);
    return region.unpin(0, kPinned * kPage).ok() ? 0 : kWrong;
  });
  wait_for_child(shared.gate, 1, pinning);
  const pid_t beside = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
    const int code = write(region, kPinned + kEach, kPages);
    shared.is_over.store(1);
    return code;
  });
  EXPECT_EQ(job.end(beside), 0);
  shared.is_over.store(1);
  EXPECT_EQ(job.end(pinning), 0);
  const std::vector<uint64_t> stored = words_of(job.path());
  for (uint64_t page = 0; page < kPages; ++page) ASSERT_EQ(stored[page * 512], page) << page;
}

}  // namespace
}  // namespace outcore
