// Processes that write one file in a buffer: they see what others write at once, in one limit.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>
#include <vector>

#include "core/tests/buffer/writes.h"

namespace outcore {
namespace {

using namespace scene;

using namespace of_job;

class WritesTogether : public of_job::Writes {};
INSTANTIATE_TEST_SUITE_P(By, WritesTogether,
                         testing::Values(Delivery::kInThread, Delivery::kMessages),
                         name_of_delivery);

TEST_P(WritesTogether, WhatOneWritesOthersSeeAtOnce) {
  Job job(64);
  auto& shared = job.shared();
  const pid_t writer = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
    if (!job.is_right(region, 5, 0)) return kWrong;
    wait_for(shared.arrived, 2);
    cells(region)[5 * 512].store(77);
    cells(region)[6 * 512 + 3].store(78);
    shared.gate.store(1);
    wait_for(shared.gate, 2);
    return cells(region)[7 * 512].load() == 79 ? 0 : kWrong;
  });
  const pid_t other = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
    if (!job.is_right(region, 6, 0)) return kWrong;
    shared.arrived.fetch_add(1);
    wait_for(shared.gate, 1);
    const bool is_seen =
        cells(region)[5 * 512].load() == 77 && cells(region)[6 * 512 + 3].load() == 78;
    cells(region)[7 * 512].store(79);
    shared.gate.store(2);
    return is_seen ? 0 : kWrong;
  });
  const pid_t reader = begin(job, Access::kReadOnly, [&](Runtime&, Region& region) {
    if (!job.is_right(region, 5, 0)) return kWrong;
    shared.arrived.fetch_add(1);
    wait_for(shared.gate, 2);
    return cells(region)[5 * 512].load() == 77 && cells(region)[7 * 512].load() == 79 ? 0 : kWrong;
  });
  for (const pid_t process : {writer, other, reader}) EXPECT_EQ(job.end(process), 0);
  const std::vector<uint64_t> stored = words_of(job.path());
  EXPECT_EQ(stored[5 * 512], 77u);
  EXPECT_EQ(stored[6 * 512 + 3], 78u);
  EXPECT_EQ(stored[7 * 512], 79u);
  EXPECT_EQ(stored[8 * 512], Job::word(8 * 512));
}

TEST_P(WritesTogether, MoreThanTheLimitIsRightInMemoryAndInTheFile) {
  Job job(8192);  // four times the limit
  EXPECT_EQ(as_member(job, Access::kReadWrite,
                      [&](Runtime& runtime, Region& region) {
                        Cell* const all = cells(region);
                        for (uint64_t i = 0; i < job.file_bytes() / 8; i += 64) all[i].store(~i);
                        EXPECT_LE(Job::facts().used_bytes, kLimit);
                        for (uint64_t i = 0; i < job.file_bytes() / 8; i += 64) {
                          if (all[i].load() != ~i) return kWrong;
                          if (all[i + 1].load() != Job::word(i + 1)) return kWrong;
                        }
                        EXPECT_GT(runtime.metrics().counters.write_backs, 4096u);
                        return 0;
                      }),
            0);
  const std::vector<uint64_t> stored = words_of(job.path());
  for (uint64_t i = 0; i < stored.size(); ++i)
    ASSERT_EQ(stored[i], i % 64 == 0 ? ~i : Job::word(i)) << i;
}

// Each adds one to cells as chance will have it: none may be lost, whoever stores and evicts.
TEST_P(WritesTogether, ManyProcessesLoseNoAddition) {
  constexpr uint64_t kPages = 4096, kProcesses = 4, kAdditions = 30'000;  // twice the limit
  Job job(kPages);
  for (uint64_t p = 0; p < kProcesses; ++p)
    begin(job, Access::kReadWrite, [&, p](Runtime&, Region& region) {
      std::vector<std::thread> threads;
      for (uint64_t t = 0; t < 2; ++t)
        threads.emplace_back([&, t] {
          std::mt19937_64 random(p * 2 + t);
          for (uint64_t i = 0; i < kAdditions / 2; ++i)
            cells(region)[random() % kPages * 512 + random() % 4].fetch_add(1);
        });
      for (std::thread& thread : threads) thread.join();
      return 0;
    });
  // Beside them, what others wrote is stored while pages leave that nobody has marked yet.
  begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
    for (int i = 0; i < 100; ++i)
      if (!region.flush().ok()) return kWrong;
    return 0;
  });
  for (const pid_t process : std::vector<pid_t>(job.processes())) EXPECT_EQ(job.end(process), 0);
  uint64_t sum = 0;
  const std::vector<uint64_t> stored = words_of(job.path());
  for (uint64_t i = 0; i < stored.size(); ++i) sum += stored[i] - Job::word(i);
  EXPECT_EQ(sum, kProcesses * kAdditions);
}

// What is written cannot leave: so it must not fill the limit, however many files it is of.
TEST_P(WritesTogether, SeveralFilesAtOnceStayWithinTheLimit) {
  constexpr uint64_t kFiles = 5, kPages = kLimit / kPage;
  Job job(kPages);
  for (uint64_t i = 0; i < kFiles; ++i)
    std::filesystem::copy_file(job.path(), job.path() + std::to_string(i));
  const auto word = [](uint64_t file, uint64_t page) { return mix(file * kPages + page + 7); };
  EXPECT_EQ(job.end(begin(job, Access::kReadOnly,
                          [&](Runtime& runtime, Region& reader) {
                            std::vector<Region> regions;
                            for (uint64_t i = 0; i < kFiles; ++i) {
                              auto region = runtime.map(job.path() + std::to_string(i), to_write());
                              if (!region) return kNoRegion;
                              regions.push_back(std::move(region).value());
                            }
                            for (uint64_t page = 0; page < kPages; ++page) {
                              for (uint64_t i = 0; i < kFiles; ++i)
                                cells(regions[i])[page * 512 + 9].store(word(i, page));
                              if (!job.is_right(reader, mix(page) % kPages, page)) return kWrong;
                              if (Job::facts().used_bytes > kLimit) return kLeak;
                            }
                            return 0;
                          })),
            0);
  for (uint64_t i = 0; i < kFiles; ++i) {
    const std::vector<uint64_t> stored = words_of(job.path() + std::to_string(i));
    for (uint64_t page = 0; page < kPages; ++page)
      ASSERT_EQ(stored[page * 512 + 9], word(i, page)) << i << " " << page;
  }
}

TEST_P(WritesTogether, AForkedChildWritesItsParentsRegion) {
  Job job(64);
  EXPECT_EQ(job.end(begin(job, Access::kReadWrite,
                          [&](Runtime&, Region& region) {
                            cells(region)[0].store(1);
                            const pid_t child = ::fork();
                            if (child == 0) {
                              if (cells(region)[0].load() != 1) ::_exit(kWrong);
                              cells(region)[0].store(2);
                              cells(region)[512].store(3);
                              ::_exit(region.flush().ok() ? 0 : kNotShared);
                            }
                            int status = 0;
                            if (::waitpid(child, &status, 0) != child) return kLeak;
                            if (status != 0) return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
                            return cells(region)[0].load() == 2 && cells(region)[512].load() == 3
                                       ? 0
                                       : kWrong;
                          })),
            0);
  EXPECT_EQ(words_of(job.path())[512], 3u);
}

// Readers stay when the last writer goes, and the next one finds them.
TEST_P(WritesTogether, WritersThatComeAndGoShareWithReadersThatStay) {
  Job job(256);
  auto& shared = job.shared();
  const pid_t reader = begin(job, Access::kReadOnly, [&](Runtime&, Region& region) {
    for (uint64_t page = 0; page < job.file_pages(); ++page)
      if (!job.is_right(region, page, 1)) return kWrong;
    for (uint32_t round = 1; round <= 3; ++round) {
      shared.arrived.store(round);
      wait_for(shared.gate, round);
      if (cells(region)[100 * 512].load() != round) return kNotShared;
    }
    return 0;
  });
  for (uint32_t round = 1; round <= 3; ++round) {
    wait_for(shared.arrived, round);
    EXPECT_EQ(job.end(begin(job, Access::kReadWrite,
                            [&, round](Runtime& runtime, Region& region) {
                              cells(region)[100 * 512].store(round);
                              return runtime.metrics().counters.read_bytes == 0 ? 0 : kNotShared;
                            })),
              0);
    shared.gate.store(round);
  }
  EXPECT_EQ(job.end(reader), 0);
  EXPECT_EQ(words_of(job.path())[100 * 512], 3u);
}

// Who cannot share it, as its pages are larger, would have memory of its own, and old bytes.
TEST_P(WritesTogether, NobodyMapsItBesideThoseWhoWriteIt) {
  Job job(64);
  auto& shared = job.shared();
  const pid_t writer = begin(job, Access::kReadWrite, [&](Runtime&, Region& region) {
    cells(region)[512].store(42);
    shared.arrived.fetch_add(1);
    wait_for(shared.gate, 1);
    return 0;
  });
  wait_for(shared.arrived, 1);
  const auto map_large_pages = [&](Access access) {
    auto runtime = Runtime::start(options());
    if (!runtime) return kNoRuntime;
    MapOptions how;
    how.access = access;
    how.page_bytes = 65536;
    const auto region = runtime.value().map(job.path(), how);
    if (!region) return region.code() == EBUSY ? 0 : kNoRegion;
    return cells(region.value())[512].load() == 42 ? kLeak : kWrong;
  };
  for (const Access access : {Access::kReadWrite, Access::kReadOnly})
    EXPECT_EQ(job.end(job.begin([&] { return map_large_pages(access); })), 0);
  shared.gate.store(1);
  EXPECT_EQ(job.end(writer), 0);
  EXPECT_EQ(job.end(job.begin([&] { return map_large_pages(Access::kReadOnly); })), kLeak);
}

TEST_P(WritesTogether, AnotherSizeIsRefusedWhileOthersHaveIt) {
  Job job(64);
  auto& shared = job.shared();
  const pid_t writer = begin(job, Access::kReadWrite, [&](Runtime&, Region&) {
    shared.arrived.fetch_add(1);
    wait_for(shared.gate, 1);
    return 0;
  });
  wait_for(shared.arrived, 1);
  EXPECT_EQ(job.end(job.begin([&] {
    auto runtime = Runtime::start(options());
    if (!runtime) return kNoRuntime;
    MapOptions larger = to_write();
    larger.may_create = true;
    larger.size_bytes = job.file_bytes() + kPage;
    const auto region = runtime.value().map(job.path(), larger);
    return region.code() == EBUSY ? 0 : kWrong;
  })),
            0);
  EXPECT_EQ(std::filesystem::file_size(job.path()), job.file_bytes());
  shared.gate.store(1);
  EXPECT_EQ(job.end(writer), 0);
}

// Half of the limit, by two processes of which each has marked most pages.
TEST_P(WritesTogether, WhatFitsIsStoredByTheFlushAlone) {
  constexpr uint64_t kPages = kLimit / kPage / 2;
  Job job(kPages);
  auto& shared = job.shared();
  const auto write = [&](Runtime& runtime, Region& region) {
    shared.arrived.fetch_add(1);
    wait_for(shared.arrived, 2);
    for (uint64_t round = 0; round < 3; ++round)
      for (uint64_t page = 0; page < kPages; ++page) cells(region)[page * 512].fetch_add(1);
    shared.gate.fetch_add(1);
    wait_for(shared.gate, 2);
    if (runtime.metrics().counters.write_backs != 0) return kWrong;
    shared.is_over.fetch_add(1);
    wait_for(shared.is_over, 2);
    return region.flush().ok() ? 0 : kWrong;
  };
  begin(job, Access::kReadWrite, write);
  begin(job, Access::kReadWrite, write);
  for (const pid_t process : std::vector<pid_t>(job.processes())) EXPECT_EQ(job.end(process), 0);
  const std::vector<uint64_t> stored = words_of(job.path());
  for (uint64_t page = 0; page < kPages; ++page)
    ASSERT_EQ(stored[page * 512], Job::word(page * 512) + 6) << page;
}

// Others need the room: what was written is stored as it leaves, and read again.
TEST_P(WritesTogether, WhatIsToLeaveIsStoredOnce) {
  constexpr uint64_t kWritten = kLimit / kPage / 2, kPages = 8 * kWritten;
  Job job(kPages);
  auto& shared = job.shared();
  begin(job, Access::kReadOnly, [&](Runtime&, Region& region) {
    shared.arrived.store(1);
    wait_for(shared.gate, 1);
    for (uint64_t page = kWritten; page < kPages; ++page)
      if (cells(region)[page * 512].load() != Job::word(page * 512)) return kWrong;
    shared.is_over.store(1);
    return 0;
  });
  begin(job, Access::kReadWrite, [&](Runtime& runtime, Region& region) {
    wait_for(shared.arrived, 1);
    for (uint64_t page = 0; page < kWritten; ++page) cells(region)[page * 512].store(page);
    if (runtime.metrics().counters.write_backs != 0) return kWrong;
    shared.gate.store(1);
    wait_for(shared.is_over, 1);
    for (uint64_t page = 0; page < kWritten; ++page)
      if (cells(region)[page * 512].load() != page) return kWrong;
    const uint64_t stored = runtime.metrics().counters.write_backs;
    return stored <= kWritten + 16 ? 0 : kWrong;  // a run may go on behind what was written
  });
  for (const pid_t process : std::vector<pid_t>(job.processes())) EXPECT_EQ(job.end(process), 0);
}

TEST_P(WritesTogether, PagesThatAreWrittenOneAfterTheOtherTakeFewFaults) {
  constexpr uint64_t kPages = 128;  // less than is stored by and by
  Job job(kPages);
  EXPECT_EQ(
      job.end(begin(job, Access::kReadWrite,
                    [&](Runtime&, Region& region) {
                      if (!region.prefault(0, kPages * kPage).ok()) return kNoRegion;
                      for (uint64_t page = 0; page < kPages; ++page)
                        cells(region)[page * 512].store(page + 1);
                      // 1, 2, 4, 8, and then 16 pages at a time.
                      return region.metrics().counters.write_faults <= 5 + kPages / 16 ? 0 : kWrong;
                    })),
      0);
  const std::vector<uint64_t> stored = words_of(job.path());
  for (uint64_t page = 0; page < kPages; ++page) {
    EXPECT_EQ(stored[page * 512], page + 1);
    EXPECT_EQ(stored[page * 512 + 1], Job::word(page * 512 + 1));
  }
}

// Two mappings of the kernel, so that one call for both fails.
TEST_P(WritesTogether, RunsOfWritesCrossPartsThatTheProgramHasAdvised) {
  constexpr uint64_t kPages = 128;
  Job job(kPages);
  EXPECT_EQ(job.end(begin(job, Access::kReadWrite,
                          [&](Runtime&, Region& region) {
                            if (!region.prefault(0, kPages * kPage).ok()) return kNoRegion;
                            for (const uint64_t first : {20, 51, 90})
                              if (::madvise(region.data() + first * kPage, 7 * kPage,
                                            MADV_SEQUENTIAL) != 0)
                                return kWrong;
                            uint64_t read = 0;
                            for (uint64_t page = kPages; page-- > 0;)
                              read += cells(region)[page * 512].load();
                            for (uint64_t page = 0; page < kPages; ++page)
                              cells(region)[page * 512].store(page + read);
                            for (uint64_t page = kPages; page-- > 0;)
                              cells(region)[page * 512].fetch_sub(read);
                            return 0;
                          })),
            0);
  const std::vector<uint64_t> stored = words_of(job.path());
  for (uint64_t page = 0; page < kPages; ++page) EXPECT_EQ(stored[page * 512], page);
}

// All of them have to be stored before they leave, by the one or the other.
TEST_P(WritesTogether, PagesThatAllWriteInTurnsAreNeverOld) {
  constexpr uint64_t kPages = 4 * kLimit / kPage, kRounds = 3, kProcesses = 3;
  Job job(kPages);
  auto& shared = job.shared();
  std::vector<pid_t> writers;
  for (uint64_t i = 0; i < kProcesses; ++i)
    writers.push_back(begin(job, Access::kReadWrite, [&, i](Runtime&, Region& region) {
      shared.arrived.fetch_add(1);
      wait_for(shared.arrived, kProcesses);
      for (uint64_t round = 0; round < kRounds; ++round)
        for (uint64_t at = 0; at < kPages; ++at) {
          const uint64_t page = (round + i) % 2 == 0 ? at : kPages - 1 - at;
          cells(region)[page * 512].fetch_add(1);
        }
      return region.flush().ok() ? 0 : kWrong;
    }));
  for (const pid_t process : writers) EXPECT_EQ(job.end(process), 0);
  const std::vector<uint64_t> stored = words_of(job.path());
  uint64_t wrong = 0;
  for (uint64_t page = 0; page < kPages; ++page)
    wrong += stored[page * 512] == Job::word(page * 512) + kRounds * kProcesses ? 0 : 1;
  EXPECT_EQ(wrong, 0u);
}

TEST_P(WritesTogether, CallsOnARegionAreForWhatAllSee) {
  Job job(64);
  EXPECT_EQ(job.end(begin(job, Access::kReadWrite,
                          [&](Runtime& runtime, Region& region) {
                            const std::vector<std::byte> bytes(10'000, std::byte{7});
                            std::vector<std::byte> got(bytes.size());
                            if (!region.write(4000, bytes).ok()) return kWrong;
                            if (!region.read(4000, got).ok() || got != bytes) return kWrong;
                            if (!region.discard(kPage, kPage).ok()) return kWrong;
                            if (region.data()[kPage] != std::byte{0}) return kWrong;
                            if (region.data()[2 * kPage] != std::byte{7}) return kWrong;
                            if (!region.pin(0, 2 * kPage).ok()) return kNoRegion;
                            cells(region)[0].store(9);
                            if (!region.flush().ok()) return kWrong;
                            cells(region)[1].store(10);
                            if (!region.unpin(0, 2 * kPage).ok()) return kNoRegion;
                            if (!region.advise(0, kPage, Advice::kDontNeed).ok()) return kWrong;
                            if (cells(region)[1].load() != 10) return kWrong;
                            const auto again = runtime.map(job.path());
                            if (!again || cells(again.value())[0].load() != 9) return kNotShared;
                            return 0;
                          })),
            0);
  const std::vector<uint64_t> stored = words_of(job.path());
  EXPECT_EQ(stored[0], 9u);
  EXPECT_EQ(stored[1], 10u);
  EXPECT_EQ(stored[512], 0u);
}

}  // namespace
}  // namespace outcore
