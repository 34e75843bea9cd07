// A process that has several regions of a file it writes in a buffer, and files that are cut.
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

class WritesBySeveralRegions : public of_job::Writes {};
INSTANTIATE_TEST_SUITE_P(By, WritesBySeveralRegions,
                         testing::Values(Delivery::kInThread, Delivery::kMessages),
                         name_of_delivery);

MapOptions part(uint64_t first, uint64_t pages, Access access = Access::kReadWrite) {
  MapOptions how;
  how.access = access;
  how.offset = first * kPage;
  how.size_bytes = pages * kPage;
  return how;
}

TEST_P(WritesBySeveralRegions, EachSeesWhatTheOthersWrite) {
  Job job(64);
  EXPECT_EQ(job.end(begin(job, Access::kReadWrite,
                          [&](Runtime& runtime, Region& region) {
                            cells(region)[9 * 512].store(1);
                            auto second = runtime.map(job.path(), part(8, 4));
                            auto reader = runtime.map(job.path(), part(0, 64, Access::kReadOnly));
                            if (!second || !reader) return kNoRegion;
                            if (cells(second.value())[512].load() != 1) return kNotShared;
                            cells(second.value())[513].store(2);
                            cells(region)[514].store(3);
                            if (cells(region)[9 * 512 + 1].load() != 2) return kNotShared;
                            if (!second.value().flush().ok()) return kWrong;
                            cells(region)[9 * 512].store(4);  // was stored, and is written again
                            if (cells(reader.value())[9 * 512].load() != 4) return kNotShared;
                            return second.value().unmap().ok() ? 0 : kWrong;
                          })),
            0);
  const std::vector<uint64_t> stored = words_of(job.path());
  EXPECT_EQ(stored[514], 3u);
  EXPECT_EQ(stored[9 * 512], 4u);
  EXPECT_EQ(stored[9 * 512 + 1], 2u);
  EXPECT_EQ(stored[9 * 512 + 2], Job::word(9 * 512 + 2));
}

// Regions come and go in each thread, while others write the same pages through theirs.
TEST_P(WritesBySeveralRegions, ThatComeAndGoLoseNoAddition) {
  constexpr uint64_t kPages = 4096, kProcesses = 3, kRounds = 60, kAdditions = 100;
  Job job(kPages);  // twice the limit
  for (uint64_t p = 0; p < kProcesses; ++p)
    begin(job, Access::kReadWrite, [&, p](Runtime& runtime, Region& region) {
      std::atomic<int> failed{0};
      std::vector<std::thread> threads;
      for (uint64_t t = 0; t < 2; ++t)
        threads.emplace_back([&, t] {
          std::mt19937_64 random(p * 2 + t);
          for (uint64_t round = 0; round < kRounds; ++round) {
            const uint64_t first = random() % (kPages - 64), pages = 1 + random() % 64;
            auto own = runtime.map(job.path(), part(first, pages));
            if (!own) return failed.store(kNoRegion);
            for (uint64_t i = 0; i < kAdditions; ++i) {
              const uint64_t page = random() % pages;
              cells(own.value())[page * 512 + random() % 4].fetch_add(1);
              cells(region)[(first + page) * 512 + random() % 4].fetch_add(1);
            }
            if (random() % 4 == 0 && !own.value().flush().ok()) return failed.store(kWrong);
            if (!own.value().unmap().ok()) return failed.store(kWrong);
          }
        });
      for (std::thread& thread : threads) thread.join();
      return failed.load();
    });
  for (const pid_t process : std::vector<pid_t>(job.processes())) EXPECT_EQ(job.end(process), 0);
  uint64_t sum = 0;
  const std::vector<uint64_t> stored = words_of(job.path());
  for (uint64_t i = 0; i < stored.size(); ++i) sum += stored[i] - Job::word(i);
  EXPECT_EQ(sum, kProcesses * 2 * kRounds * kAdditions * 2);
}

TEST_P(WritesBySeveralRegions, AForkedChildWritesThroughBoth) {
  Job job(64);
  EXPECT_EQ(job.end(begin(job, Access::kReadWrite,
                          [&](Runtime& runtime, Region& region) {
                            auto second = runtime.map(job.path(), part(8, 4));
                            if (!second) return kNoRegion;
                            cells(region)[8 * 512].store(1);
                            const pid_t child = ::fork();
                            if (child == 0) {
                              if (cells(second.value())[0].load() != 1) ::_exit(kWrong);
                              cells(second.value())[0].store(2);
                              cells(region)[8 * 512 + 1].store(3);
                              ::_exit(region.flush().ok() ? 0 : kNotShared);
                            }
                            int status = 0;
                            if (::waitpid(child, &status, 0) != child) return kLeak;
                            if (status != 0) return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
                            return cells(region)[8 * 512].load() == 2 &&
                                           cells(second.value())[1].load() == 3
                                       ? 0
                                       : kWrong;
                          })),
            0);
  EXPECT_EQ(words_of(job.path())[8 * 512 + 1], 3u);
}

class Shortened : public of_job::Writes {};
INSTANTIATE_TEST_SUITE_P(By, Shortened, testing::Values(Delivery::kInThread), name_of_delivery);

// Whoever has it, to read or to write, would lose what is cut off.
TEST_P(Shortened, AFileIsNotCutUnderOthers) {
  for (const Access access : {Access::kReadOnly, Access::kReadWrite}) {
    Job job(64);
    auto& shared = job.shared();
    const pid_t other = begin(job, access, [&](Runtime&, Region& region) {
      if (access == Access::kReadWrite) cells(region)[40 * 512].store(7);
      shared.arrived.store(1);
      wait_for(shared.gate, 1);
      return 0;
    });
    wait_for(shared.arrived, 1);
    const auto shorten = [&] {
      auto runtime = Runtime::start(options());
      if (!runtime) return kNoRuntime;
      const Status s = runtime.value().shorten(job.path(), kPage);
      return s.ok() ? 0 : s.code();
    };
    EXPECT_EQ(job.end(job.begin(shorten)), EBUSY);
    EXPECT_EQ(std::filesystem::file_size(job.path()), job.file_bytes());
    shared.gate.store(1);
    EXPECT_EQ(job.end(other), 0);
    EXPECT_EQ(job.end(job.begin(shorten)), 0);
    EXPECT_EQ(std::filesystem::file_size(job.path()), kPage);
  }
}

TEST_P(Shortened, NorUnderRegionsOfTheRuntime) {
  Job job(64);
  EXPECT_EQ(job.end(begin(job, Access::kReadOnly,
                          [&](Runtime& runtime, Region&) {
                            return runtime.shorten(job.path(), kPage).code() == EBUSY ? 0 : kWrong;
                          })),
            0);
  EXPECT_EQ(std::filesystem::file_size(job.path()), job.file_bytes());
}

}  // namespace
}  // namespace outcore
