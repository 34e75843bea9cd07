// What processes write in a buffer reaches the file: by flush, by others when they are killed; and
// what cannot be stored stays.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "core/tests/buffer/cells.h"
#include "core/tests/buffer/writes.h"

namespace outcore {
namespace {

using namespace scene;

using namespace of_job;

class WritesKept : public of_job::Writes {};
INSTANTIATE_TEST_SUITE_P(By, WritesKept, testing::Values(Delivery::kInThread, Delivery::kMessages),
                         name_of_delivery);

TEST_P(WritesKept, FlushStoresWhatOthersWrote) {
  Job job(64);
  auto& shared = job.shared();
  const pid_t writer = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
    cells(region)[512].store(1234);
    shared.arrived.fetch_add(1);
    wait_for(shared.gate, 1);
    cells(region)[512].store(5678);  // it is theirs to write still
    shared.gate.store(2);
    return 0;
  });
  const pid_t other = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
    wait_for(shared.arrived, 1);
    if (!region.flush().ok()) return kWrong;
    if (words_of(job.path())[512] != 1234) return kNotShared;
    shared.gate.store(1);
    wait_for(shared.gate, 2);
    if (!region.sync().ok()) return kWrong;
    return words_of(job.path())[512] == 5678 ? 0 : kNotShared;
  });
  EXPECT_EQ(job.end(writer), 0);
  EXPECT_EQ(job.end(other), 0);
}

TEST_P(WritesKept, WhatAKilledProcessWroteIsStoredByAnother) {
  Job job(1024);
  auto& shared = job.shared();
  const pid_t writer = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
    for (uint64_t page = 0; page < job.file_pages(); page += 3)
      cells(region)[page * 512].store(page);
    shared.arrived.fetch_add(1);
    wait_for(shared.gate, 9);
    return 0;
  });
  const pid_t heir = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
    shared.arrived.fetch_add(1);
    wait_for(shared.gate, 1);
    for (uint64_t page = 0; page < job.file_pages(); ++page)
      if (cells(region)[page * 512].load() != (page % 3 == 0 ? page : Job::word(page * 512)))
        return kWrong;
    return 0;
  });
  wait_for(shared.arrived, 2);
  job.kill(writer);
  shared.gate.store(1);
  EXPECT_EQ(job.end(heir), 0);
  const std::vector<uint64_t> stored = words_of(job.path());
  for (uint64_t page = 0; page < job.file_pages(); ++page)
    ASSERT_EQ(stored[page * 512], page % 3 == 0 ? page : Job::word(page * 512)) << page;
}

TEST_P(WritesKept, KillsAtAnyMomentLoseNothing) {
  const char* const asked = std::getenv("OUTCORE_KILLS");
  const uint64_t kills = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 25;
  Job job(Cells::kPages);
  auto& shared = job.shared();
  const Cells all(job);
  EXPECT_EQ(as_member(job, Access::kReadWrite,
                      [&](Runtime&, Region& region) { return all.clear(region); }),
            0);
  // Who writes nothing is enough for the bytes of the dead to stay.
  const pid_t witness = begin(job, Access::kReadOnly, [&](Runtime&, Region& region) {
    shared.gate.store(1);
    for (uint64_t i = 0; shared.gate.load() == 1; ++i)
      if (!job.is_right(region, mix(i) % Cells::kPages, 0)) return kWrong;
    return 0;
  });
  wait_for(shared.gate, 1);
  const auto begin_writer = [&](uint64_t w) {
    return begin(job, Access::kReadWrite,
                 [&all, w](Runtime&, Region& region) { return all.write(region, w); });
  };
  std::vector<pid_t> writers;
  for (uint64_t w = 0; w < Cells::kWriters; ++w) writers.push_back(begin_writer(w));
  for (uint64_t i = 0; i < kills; ++i) {
    // So much is done between two of them: they meet processes that begin, write and store.
    const uint64_t until = shared.touches.load() + mix(i) % 3000;
    while (shared.touches.load() < until) ::sched_yield();
    const uint64_t w = mix(i + 77) % Cells::kWriters;
    ::kill(writers[w], SIGKILL);
    ASSERT_EQ(job.end(writers[w]), -SIGKILL) << "it ended by itself";
    writers[w] = begin_writer(w);
  }
  shared.is_over.store(1);  // some were killed, or see this, before they had begun
  for (const pid_t writer : writers) EXPECT_EQ(job.end(writer), 0);
  shared.gate.store(2);
  EXPECT_EQ(job.end(witness), 0);
  EXPECT_EQ(all.complaint(words_of(job.path())), "");
}

TEST_P(WritesKept, WhatCannotBeStoredStaysAndIsTold) {
  Job job(64);
  EXPECT_EQ(job.end(begin(job, Access::kReadWrite,
                          [&](Runtime&, Region& region) {
                            cells(region)[512].store(42);
                            const rlimit none{0, RLIM_INFINITY}, all{RLIM_INFINITY, RLIM_INFINITY};
                            ::signal(SIGXFSZ, SIG_IGN);
                            ::setrlimit(RLIMIT_FSIZE, &none);
                            const Status failed = region.flush();
                            ::setrlimit(RLIMIT_FSIZE, &all);
                            if (failed.code() != EFBIG) return kNotShared;
                            if (failed.message().find("stay in memory") == std::string::npos)
                              return kLeak;
                            if (words_of(job.path())[512] != Job::word(512)) return kWrong;
                            if (cells(region)[512].load() != 42) return kWrong;
                            return region.flush().ok() && words_of(job.path())[512] == 42 ? 0
                                                                                          : kWrong;
                          })),
            0);
}

// Its bytes are in memory, and somebody is there who can store them.
TEST_P(WritesKept, WhatALeaverCannotStoreIsStoredByAnother) {
  Job job(64);
  auto& shared = job.shared();
  const pid_t heir = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
    shared.arrived.fetch_add(1);
    wait_for(shared.gate, 1);
    if (!region.flush().ok() || cells(region)[512].load() != 42) return kWrong;
    // Who leaves is not dead to anybody before it has ended: the next look finds it.
    const uint64_t start_ns = base::now_ns();
    while (words_of(job.path())[512] != 42)
      if (!region.flush().ok() || base::now_ns() - start_ns > 20'000'000'000) return kNotShared;
    return 0;
  });
  wait_for(shared.arrived, 1);
  const pid_t leaver = job.begin([&] {
    auto runtime = Runtime::start(options());
    if (!runtime) return kNoRuntime;
    {
      auto region = runtime.value().map(job.path(), to_write());
      if (!region) return kNoRegion;
      cells(region.value())[512].store(42);
      const rlimit none{0, RLIM_INFINITY};
      ::signal(SIGXFSZ, SIG_IGN);
      ::setrlimit(RLIMIT_FSIZE, &none);
    }
    return 0;
  });
  EXPECT_EQ(job.end(leaver), 0);
  shared.gate.store(1);
  EXPECT_EQ(job.end(heir), 0);
  EXPECT_EQ(words_of(job.path())[512], 42u);
}

// It has mapped but a part, and leaves before it has noticed the other's end.
TEST_P(WritesKept, TheLastWriterStoresWhatOthersWroteWhoeverMappedIt) {
  for (int i = 0; i < 5; ++i) {
    Job job(64);
    auto& shared = job.shared();
    const pid_t writer = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
      cells(region)[9 * 512].store(43);
      shared.arrived.fetch_add(1);
      wait_for(shared.gate, 9);
      return 0;
    });
    const pid_t last = job.begin([&] {
      auto runtime = Runtime::start(options());
      if (!runtime) return kNoRuntime;
      MapOptions part = to_write();
      part.size_bytes = 4096;
      auto region = runtime.value().map(job.path(), part);
      if (!region) return kNoRegion;
      shared.arrived.fetch_add(1);
      wait_for(shared.gate, 1);
      return region.value().unmap().ok() ? 0 : kWrong;
    });
    wait_for(shared.arrived, 2);
    job.kill(writer);
    shared.gate.store(1);
    EXPECT_EQ(job.end(last), 0);
    ASSERT_EQ(words_of(job.path())[9 * 512], 43u) << i;
  }
}

TEST_P(WritesKept, PagesArePreparedAsTheyAre) {
  Job job(64);
  EXPECT_EQ(job.end(begin(job, Access::kReadWrite,
                          [&](Runtime& runtime, Region&) {
                            MapOptions fresh = to_write();
                            fresh.may_create = true;
                            fresh.size_bytes = 64 * 4096;
                            auto region = runtime.map(job.path() + ".new", fresh);
                            if (!region) return kNoRegion;
                            if (!region.value().prepare(0, fresh.size_bytes).ok()) return kWrong;
                            cells(region.value())[512].store(7);
                            if (!region.value().flush().ok()) return kWrong;
                            return words_of(job.path() + ".new")[512] == 7 ? 0 : kNotShared;
                          })),
            0);
}

}  // namespace
}  // namespace outcore
