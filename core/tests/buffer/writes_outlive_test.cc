// What processes wrote outlives them, if somebody is left in the buffer, whether it has mapped the
// file or not; and nobody finds less of a file than those who write it.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "core/base/clock.h"
#include "core/tests/buffer/cells.h"
#include "core/tests/buffer/writes.h"

namespace outcore {
namespace {

using namespace scene;

using namespace of_job;

class WritesOutlive : public of_job::Writes {
 protected:
  // A process that is in the buffer and maps nothing, until the job is over.
  static pid_t begin_holder(Job& job) {
    const uint64_t before = job.shared().touches.load();
    const pid_t holder = job.begin([&job] {
      auto held = HeldBuffer::hold("job", kLimit);
      if (!held) return std::fprintf(stderr, "%s\n", held.message().c_str()), kNoRuntime;
      job.shared().touches.fetch_add(1);
      wait_for(job.shared().is_over, 1);
      return 0;
    });
    while (job.shared().touches.load() == before) ::sched_yield();
    return holder;
  }
  // Writes a number into a page, and waits for being killed.
  static pid_t begin_writer(Job& job, uint64_t page, uint64_t value) {
    return begin(job, Access::kReadWrite, [&job, page, value](Runtime&, Region& region) {
      cells(region)[page * 512].store(value);
      job.shared().arrived.fetch_add(1);
      wait_for(job.shared().gate, 9);
      return 0;
    });
  }
  // Until the word is stored; false: it takes too long.
  static bool is_stored_soon(const Job& job, uint64_t i, uint64_t value) {
    const uint64_t start_ns = base::now_ns();
    while (words_of(job.path())[i] != value)
      if (base::now_ns() - start_ns > 20'000'000'000) return false;
    return true;
  }
};
INSTANTIATE_TEST_SUITE_P(By, WritesOutlive,
                         testing::Values(Delivery::kInThread, Delivery::kMessages),
                         name_of_delivery);

TEST_P(WritesOutlive, AKilledWritersBytesAreStoredByWhoHasNotMappedTheFile) {
  Job job(64);
  auto& shared = job.shared();
  const pid_t holder = begin_holder(job);
  const pid_t writer = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
    for (uint64_t page = 0; page < 64; ++page) cells(region)[page * 512 + 3].store(page + 1000);
    shared.arrived.fetch_add(1);
    wait_for(shared.gate, 9);
    return 0;
  });
  wait_for(shared.arrived, 1);
  job.kill(writer);
  for (uint64_t page = 0; page < 64; ++page)
    ASSERT_TRUE(is_stored_soon(job, page * 512 + 3, page + 1000)) << page;
  for (uint64_t page = 0; page < 64; ++page)
    ASSERT_EQ(words_of(job.path())[page * 512 + 4], Job::word(page * 512 + 4)) << page;
  shared.is_over.store(1);
  EXPECT_EQ(job.end(holder), 0);
}

// Whoever comes before they are stored finds them in memory.
TEST_P(WritesOutlive, WhoComesAfterAKillSeesWhatWasWritten) {
  for (const Access access : {Access::kReadOnly, Access::kReadWrite}) {
    Job job(64);
    auto& shared = job.shared();
    const pid_t holder = begin_holder(job);
    const pid_t writer = begin_writer(job, 1, 42);
    wait_for(shared.arrived, 1);
    job.kill(writer);
    EXPECT_EQ(as_member(job, access,
                        [](Runtime&, Region& region) {
                          return cells(region)[512].load() == 42 ? 0 : kWrong;
                        }),
              0);
    shared.is_over.store(1);
    EXPECT_EQ(job.end(holder), 0);
    EXPECT_TRUE(is_stored_soon(job, 512, 42));
  }
}

// On a busy machine it takes a while until somebody could store what a writer writes: who begins to
// write waits for that.
TEST_P(WritesOutlive, AWriterWaitsForWhoIsSlow) {
  Job job(64);
  auto& shared = job.shared();
  const pid_t holder = begin_holder(job);
  ASSERT_EQ(::kill(holder, SIGSTOP), 0);
  const pid_t writer = begin_writer(job, 1, 42);
  const uint64_t start_ns = base::now_ns();
  while (shared.arrived.load() == 0 && base::now_ns() - start_ns < 200'000'000) ::sched_yield();
  const bool has_waited = shared.arrived.load() == 0;
  if (!has_waited) job.kill(writer);
  ASSERT_EQ(::kill(holder, SIGCONT), 0);
  wait_for(shared.arrived, 1);
  if (has_waited) job.kill(writer);
  EXPECT_TRUE(is_stored_soon(job, 512, 42));
  shared.is_over.store(1);
  EXPECT_EQ(job.end(holder), 0);
}

// But not for ever, if that one is stopped.
TEST_P(WritesOutlive, AWriterGoesOnBesideOneThatIsStopped) {
  Job job(64);
  auto& shared = job.shared();
  const pid_t holder = begin_holder(job);
  ASSERT_EQ(::kill(holder, SIGSTOP), 0);
  const auto write = [](Runtime&, Region& region) {
    cells(region)[512].fetch_add(1);
    return 0;
  };
  for (int i = 0; i < 20; ++i) ASSERT_EQ(job.end(begin(job, Access::kReadWrite, write)), 0);
  EXPECT_EQ(words_of(job.path())[512], Job::word(512) + 20);
  ASSERT_EQ(::kill(holder, SIGCONT), 0);
  shared.is_over.store(1);
  EXPECT_EQ(job.end(holder), 0);
}

// The last one in the buffer does what is left to do before it goes.
TEST_P(WritesOutlive, WhoHoldsTheBufferStoresBeforeItEnds) {
  Job job(64);
  auto& shared = job.shared();
  const pid_t holder = begin_holder(job);
  const pid_t writer = begin_writer(job, 1, 42);
  wait_for(shared.arrived, 1);
  job.kill(writer);
  shared.is_over.store(1);
  EXPECT_EQ(job.end(holder), 0);
  EXPECT_EQ(words_of(job.path())[512], 42u);
}

// Each leaves it to the other only if that stays.
TEST_P(WritesOutlive, OneOfTwoThatEndTogetherStores) {
  for (uint64_t i = 0; i < 10; ++i) {
    Job job(64);
    const pid_t holders[] = {begin_holder(job), begin_holder(job)};
    const pid_t writer = begin_writer(job, 7, 42);
    wait_for(job.shared().arrived, 1);
    job.kill(writer);
    job.shared().is_over.store(1);
    for (const pid_t holder : holders) EXPECT_EQ(job.end(holder), 0);
    ASSERT_EQ(words_of(job.path())[7 * 512], 42u) << i;
  }
}

// As many as can write it: no place is left for who stores.
TEST_P(WritesOutlive, WhatAsManyWroteAsThereCanBeIsStored) {
  constexpr uint64_t kWriters = 56;
  Job job(64);
  const pid_t holder = begin_holder(job);
  std::vector<pid_t> writers;
  for (uint64_t i = 0; i < kWriters; ++i) writers.push_back(begin_writer(job, i, i + 1000));
  wait_for(job.shared().arrived, kWriters);
  for (const pid_t writer : writers) ::kill(writer, SIGKILL);
  for (const pid_t writer : writers) EXPECT_EQ(job.end(writer), -SIGKILL);
  for (uint64_t i = 0; i < kWriters; ++i) ASSERT_TRUE(is_stored_soon(job, i * 512, i + 1000)) << i;
  EXPECT_EQ(as_member(job, Access::kReadWrite, [](Runtime&, Region&) { return 0; }), 0);
  job.shared().is_over.store(1);
  EXPECT_EQ(job.end(holder), 0);
}

// Who reads it all the time keeps nobody from writing it again.
TEST_P(WritesOutlive, WritersComeAgainBesideAReader) {
  Job job(64);
  auto& shared = job.shared();
  const pid_t reader = begin(job, Access::kReadOnly, [&](Runtime&, Region& region) {
    shared.arrived.fetch_add(1);
    wait_for(shared.gate, 1);
    return cells(region)[7 * 512].load() == 43 ? 0 : kWrong;
  });
  wait_for(shared.arrived, 1);
  const pid_t writer = begin_writer(job, 7, 42);
  wait_for(shared.arrived, 2);
  job.kill(writer);
  ASSERT_TRUE(is_stored_soon(job, 7 * 512, 42));
  // It is stored a moment before nobody is said to write it.
  const auto write_again = [&] {
    return as_member(job, Access::kReadWrite, [](Runtime&, Region& region) {
      return cells(region)[7 * 512].exchange(43) == 42 ? 0 : kWrong;
    });
  };
  EXPECT_EQ(job.end(job.begin([&] {
    auto runtime = Runtime::start(options());
    if (!runtime) return kNoRuntime;
    return runtime.value().map(job.path(), to_write()).ok() ? 0 : kNoRegion;
  })),
            0);
  EXPECT_EQ(job.end(job.begin(write_again)), 0);
  shared.gate.store(1);
  EXPECT_EQ(job.end(reader), 0);
}

// It unmaps, and others have the file only to store for it.
TEST_P(WritesOutlive, WhatALeaverCannotStoreIsStoredByTheBuffersHolder) {
  Job job(64);
  const pid_t holder = begin_holder(job);
  EXPECT_EQ(job.end(job.begin([&] {
    auto runtime = Runtime::start(options());
    if (!runtime) return kNoRuntime;
    auto region = runtime.value().map(job.path(), to_write());
    if (!region) return kNoRegion;
    cells(region.value())[512].store(42);
    const rlimit none{0, RLIM_INFINITY};
    ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &none);
    return 0;
  })),
            0);
  EXPECT_TRUE(is_stored_soon(job, 512, 42));
  job.shared().is_over.store(1);
  EXPECT_EQ(job.end(holder), 0);
}

// Locks of a process on a file end when it closes any descriptor of it: not one of ours.
TEST_P(WritesOutlive, ProgramsKeepTheirLocksOfAFileThatOthersWrite) {
  Job job(64);
  auto& shared = job.shared();
  const pid_t holder = job.begin([&] {
    auto held = HeldBuffer::hold("job", kLimit);
    const int fd = ::open(job.path().c_str(), O_RDWR);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    if (!held || ::fcntl(fd, F_SETLK, &lock) != 0) return kNoRuntime;
    shared.arrived.fetch_add(1);
    wait_for(shared.gate, 1);
    return 0;
  });
  wait_for(shared.arrived, 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(job.end(begin(job, Access::kReadWrite,
                            [](Runtime&, Region& region) {
                              cells(region)[512].store(42);
                              return 0;
                            })),
              0);
    // Others let go of the file within a period.
    const uint64_t start_ns = base::now_ns();
    const int fd = ::open(job.path().c_str(), O_RDWR);
    while (base::now_ns() - start_ns < 300'000'000) {
      struct flock found {};
      found.l_type = F_WRLCK;
      ASSERT_EQ(::fcntl(fd, F_GETLK, &found), 0);
      ASSERT_EQ(found.l_type, F_WRLCK);
      ASSERT_EQ(found.l_pid, holder);
      ::sched_yield();
    }
    ::close(fd);
  }
  shared.gate.store(1);
  EXPECT_EQ(job.end(holder), 0);
}

TEST_P(WritesOutlive, KillsOfAllWritersLoseNothing) {
  const char* const asked = std::getenv("OUTCORE_KILLS");
  const uint64_t rounds = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 8;
  Job job(Cells::kPages);
  auto& shared = job.shared();
  const Cells all(job);
  EXPECT_EQ(as_member(job, Access::kReadWrite,
                      [&](Runtime&, Region& region) { return all.clear(region); }),
            0);
  const pid_t holder = begin_holder(job);
  for (uint64_t round = 0; round < rounds; ++round) {
    std::vector<pid_t> writers;
    for (uint64_t w = 0; w < Cells::kWriters; ++w)
      writers.push_back(begin(job, Access::kReadWrite, [&all, w](Runtime&, Region& region) {
        return all.write(region, w);
      }));
    const uint64_t until = shared.touches.load() + 500 + mix(round) % 3000;
    while (shared.touches.load() < until) ::sched_yield();
    for (const pid_t writer : writers) ::kill(writer, SIGKILL);
    for (const pid_t writer : writers) ASSERT_EQ(job.end(writer), -SIGKILL) << "it ended by itself";
  }
  shared.is_over.store(1);
  EXPECT_EQ(job.end(holder), 0);  // and stores what the last ones wrote
  EXPECT_EQ(all.complaint(words_of(job.path())), "");
}

// As `outcore serve` does when somebody opens the file for writing, who may be in the same buffer.
TEST_P(WritesOutlive, NobodyMakesASecondMemoryOfAFileThatIsGivenUp) {
  Job job(64);
  auto& shared = job.shared();
  const pid_t holder = job.begin([&] {
    auto held = HeldBuffer::hold("job", kLimit);
    if (!held) return kNoRuntime;
    const int fd = ::open(job.path().c_str(), O_RDONLY);
    auto file = held.value().hold_file(fd);
    if (!file) return kNoRegion;
    shared.arrived.fetch_add(1);
    wait_for(shared.gate, 1);
    file.value().close_to_others();
    shared.gate.store(2);
    wait_for(shared.gate, 3);
    return 0;
  });
  wait_for(shared.arrived, 1);
  const pid_t writer = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
    cells(region)[512].store(42);
    shared.gate.store(1);
    wait_for(shared.gate, 3);
    return 0;
  });
  wait_for(shared.gate, 2);
  for (const Access access : {Access::kReadOnly, Access::kReadWrite})
    EXPECT_EQ(as_member(job, access,
                        [](Runtime&, Region& region) {
                          return cells(region)[512].load() == 42 ? 0 : kWrong;
                        }),
              0);
  shared.gate.store(3);
  EXPECT_EQ(job.end(writer), 0);
  EXPECT_EQ(job.end(holder), 0);
  EXPECT_EQ(words_of(job.path())[512], 42u);
}

// Who has it from before sees what was there before: so nobody writes it meanwhile.
TEST_P(WritesOutlive, NobodyWritesAFileThatOthersHaveAsItWas) {
  Job job(64);
  auto& shared = job.shared();
  const pid_t holder = job.begin([&] {
    auto held = HeldBuffer::hold("job", kLimit);
    if (!held) return kNoRuntime;
    const int fd = ::open(job.path().c_str(), O_RDONLY);
    auto file = held.value().hold_file(fd);
    if (!file) return kNoRegion;
    file.value().close_to_others();
    shared.arrived.fetch_add(1);
    wait_for(shared.gate, 1);
    return 0;
  });
  wait_for(shared.arrived, 1);
  const auto code_to_write = [&] {
    auto runtime = Runtime::start(options());
    return runtime ? runtime.value().map(job.path(), to_write()).code() : kNoRuntime;
  };
  EXPECT_EQ(job.end(job.begin(code_to_write)), EBUSY);
  shared.gate.store(1);
  EXPECT_EQ(job.end(holder), 0);
  EXPECT_EQ(job.end(job.begin(code_to_write)), 0);
}

}  // namespace
}  // namespace outcore
