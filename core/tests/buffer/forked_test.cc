// Forked children of members of a buffer: what they read at their parents' addresses.
#include <dirent.h>
#include <sys/syscall.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "core/tests/buffer/forked.h"
#include "outcore/forks.h"

namespace outcore {
namespace {

using namespace scene;

using namespace of_job;

TEST_F(Forked, AChildReadsItsParentsRegionAsAMemberOfTheBuffer) {
  EXPECT_EQ(in_member([&](Runtime&, Region& region) {
              if (!is_all_right(region)) return kWrong;
              return status_in_child([&] {
                if (is_member(::getpid())) return kNotShared;  // it has not used it yet
                if (!is_all_right(region, 2)) return kWrong;
                if (!is_member(::getpid()) || Job::facts().files != 1) return kNotShared;
                return Job::facts().resident_bytes <= kLimit ? 0 : kWrong;
              });
            }),
            0);
  EXPECT_EQ(Job::facts().members.size(), 0u);
}

// What is in memory is used there: nobody reads it again, and nothing more is in memory.
TEST_F(Forked, PagesInMemoryAreShared) {
  EXPECT_EQ(in_member([&](Runtime&, Region& region) {
              if (!region.advise(0, kPage, Advice::kRandom).ok()) return kNoRegion;  // no guesses
              for (uint64_t page = 0; page < 512; ++page)
                if (!job_.is_right(region, page, page)) return kWrong;
              const uint64_t resident = Job::facts().resident_bytes;
              return status_in_child([&] {
                for (uint64_t page = 0; page < 512; ++page)
                  if (!job_.is_right(region, page, page)) return kWrong;
                if (!is_member(::getpid())) return kNotShared;
                return Job::facts().resident_bytes == resident &&
                               region.metrics().counters.read_bytes == 0
                           ? 0
                           : kWrong;
              });
            }),
            0);
}

TEST_F(Forked, ByMessagesToo) {
  if (const auto kernel = os::detect_kernel_features("all"); !kernel.value().has_messages)
    GTEST_SKIP() << kernel.value().why_no_messages;
  const auto read = [&](Runtime&, Region& region) {
    return status_in_child([&] {
      if (!is_all_right(region)) return kWrong;
      return is_member(::getpid()) ? 0 : kNotShared;
    });
  };
  EXPECT_EQ(in_member(read, Delivery::kMessages), 0);
}

TEST_F(Forked, AChildsCallsAreOnItsOwnRegion) {
  EXPECT_EQ(in_member([&](Runtime& runtime, Region& region) {
              return status_in_child([&] {
                if (!region.pin(0, 16 * kPage).ok() || !is_member(::getpid())) return kNotShared;
                uint64_t word = 0;
                std::span<std::byte> into{reinterpret_cast<std::byte*>(&word), sizeof word};
                if (!region.read(5 * kPage, into).ok()) return kNoRegion;
                if (word != Job::word(5 * kPage / 8)) return kWrong;
                if (!is_all_right(region) || !region.unpin(0, 16 * kPage).ok()) return kWrong;
                if (region.metrics().counters.read_bytes == 0) return kWrong;
                if (runtime.map(job_.path()).code() != EPERM) return kNoRuntime;
                if (!region.unmap().ok() || region.is_mapped()) return kNoRegion;
                { const Region ended(std::move(region)); }  // the last that holds its runtime
                return is_member(::getpid()) ? kLeak : 0;
              });
            }),
            0);
}

TEST_F(Forked, AChildOfAChildIsAMemberToo) {
  EXPECT_EQ(in_member([&](Runtime&, Region& region) {
              for (const bool is_used_before : {false, true}) {
                const int status = status_in_child([&] {
                  if (is_used_before && !job_.is_right(region, 9, 9)) return kWrong;
                  const int of_grandchild = status_in_child([&] {
                    if (!is_all_right(region, 3)) return kWrong;
                    return is_member(::getpid()) ? 0 : kNotShared;
                  });
                  if (of_grandchild != 0) return of_grandchild;
                  return is_all_right(region, 4) ? 0 : kWrong;
                });
                if (status != 0) return status;
              }
              return is_all_right(region, 5) ? 0 : kWrong;
            }),
            0);
}

TEST_F(Forked, ThreadsOfAChildMayTouchItFirstAllAtOnce) {
  EXPECT_EQ(in_member([&](Runtime&, Region& region) {
              for (int round = 0; round < 20; ++round) {
                const int status = status_in_child([&] {
                  std::atomic<int> wrong{0};
                  std::atomic<bool> has_begun{false};
                  std::vector<std::thread> threads;
                  for (uint64_t t = 0; t < 6; ++t)
                    threads.emplace_back([&, t] {
                      while (!has_begun) ::sched_yield();
                      for (uint64_t i = 0; i < 200; ++i)
                        if (!job_.is_right(region, mix(t * 1000 + i) % job_.file_pages(), i))
                          wrong.fetch_add(1);
                    });
                  has_begun = true;
                  for (std::thread& thread : threads) thread.join();
                  return wrong.load() == 0 ? 0 : kWrong;
                });
                if (status != 0) return status;
              }
              return 0;
            }),
            0);
}

TEST_F(Forked, AForkBesideThreadsInFaultsAndEvictionIsRight) {
  EXPECT_EQ(in_member([&](Runtime&, Region& region) {
              std::atomic<bool> is_over{false};
              std::atomic<int> wrong{0};
              std::vector<std::thread> threads;
              for (uint64_t t = 0; t < 3; ++t)
                threads.emplace_back([&, t] {
                  for (uint64_t i = 0; !is_over; ++i)
                    if (!job_.is_right(region, mix(t * 99'999 + i) % job_.file_pages(), i))
                      wrong.fetch_add(1);
                });
              int status = 0;
              for (uint64_t round = 0; round < 30 && status == 0; ++round)
                status = status_in_child([&] {
                  for (uint64_t i = 0; i < 500; ++i)
                    if (!job_.is_right(region, mix(round * 999 + i) % job_.file_pages(), i))
                      return kWrong;
                  return is_member(::getpid()) ? 0 : kNotShared;
                });
              is_over = true;
              for (std::thread& thread : threads) thread.join();
              return status != 0 ? status : wrong.load() == 0 ? 0 : kWrong;
            }),
            0);
}

// Another thread of the child forks while one makes the region the child's own.
TEST_F(Forked, AForkBesideTheFirstTouchOfAChildIsRight) {
  EXPECT_EQ(in_member([&](Runtime&, Region& region) {
              for (int round = 0; round < 20; ++round) {
                const int status = status_in_child([&] {
                  std::atomic<bool> is_right{false};
                  std::thread toucher([&] { is_right = is_all_right(region, 6); });
                  int of_grandchild = 0;
                  for (uint64_t i = 0; i < 5 && of_grandchild == 0; ++i)
                    of_grandchild = status_in_child(
                        [&] { return job_.is_right(region, mix(i) % 4096, 1) ? 0 : kWrong; });
                  toucher.join();
                  return of_grandchild != 0 ? of_grandchild : is_right ? 0 : kWrong;
                });
                if (status != 0) return status;
              }
              return 0;
            }),
            0);
}

TEST_F(Forked, AChildGoesOnWhenItsParentHasEnded) {
  const auto orphan = [&](Runtime&, Region& region) {
    const pid_t parent = ::getpid();
    if (::fork() == 0) {
      while (::getppid() == parent) ::sched_yield();
      const bool is_right = is_all_right(region) && is_member(::getpid());
      job_.shared().arrived.store(is_right ? 1 : 2);
      ::_exit(0);
    }
    return 0;
  };
  EXPECT_EQ(in_member(orphan), 0);
  while (job_.shared().arrived.load() == 0) ::sched_yield();
  EXPECT_EQ(job_.shared().arrived.load(), 1u);
}

// As a daemon does at its beginning; its file is then found by its name.
TEST_F(Forked, AChildThatHasClosedAllDescriptorsReadsIt) {
  EXPECT_EQ(in_member([&](Runtime&, Region& region) {
              return status_in_child([&] {
                if (::syscall(SYS_close_range, 3u, ~0u, 0) != 0) return kNoRegion;
                if (!is_all_right(region)) return kWrong;
                return is_member(::getpid()) ? 0 : kNotShared;
              });
            }),
            0);
}

uint64_t count_of_descriptors() {
  uint64_t count = 0;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

uint64_t count_of_mappings() {
  std::ifstream maps("/proc/self/maps");
  uint64_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

// As one that has given up its user, and so finds another folder: not a second buffer of as much.
// The child of vfork() has its parent's memory: what it starts ends with it, and the parent would
// go on with frames that nobody fills.
// Its own runtime of the same buffer has the file already: only one can.
TEST_F(Forked, ManyForksInARowLeaveNothingBehind) {
  const char* const asked = std::getenv("OUTCORE_FORKS");
  const uint64_t forks = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 300;
  EXPECT_EQ(in_member([&](Runtime&, Region& region) {
              uint64_t descriptors = 0, mappings = 0, used = 0;
              for (uint64_t i = 0; i < forks; ++i) {
                const int status = status_in_child([&] {
                  for (uint64_t k = 0; k < 20; ++k)
                    if (!job_.is_right(region, mix(i * 99 + k) % job_.file_pages(), k))
                      return kWrong;
                  if (i % 3 == 0) ::kill(::getpid(), SIGKILL);
                  return is_member(::getpid()) ? 0 : kNotShared;
                });
                if (status != (i % 3 == 0 ? -SIGKILL : 0)) return status == 0 ? kWrong : status;
                if (i != 20) continue;  // what is made once has been made
                descriptors = count_of_descriptors();
                mappings = count_of_mappings();
              }
              // What the dead had is given back when the keeping process has noticed.
              while (Job::facts().members.size() != 1) ::sched_yield();
              do {
                used = Job::facts().coming_bytes + Job::facts().used_bytes -
                       Job::facts().resident_bytes;
                ::sched_yield();
              } while (used > 256 << 10);
              if (count_of_descriptors() > descriptors) return kLeak;
              return count_of_mappings() <= mappings + 8 ? 0 : kLeak;
            }),
            0);
}

// Members that fork, and their children, are killed at any moment; others check all that they read.
TEST_F(Forked, OthersGoOnWhenForkedChildrenAreKilledAtAnyMoment) {
  const char* const asked = std::getenv("OUTCORE_KILLS");
  const uint64_t kills = asked != nullptr ? std::strtoull(asked, nullptr, 10) : 100;
  const auto read = [&](Runtime&, Region& region) {
    for (uint64_t i = 0; job_.shared().is_over.load() == 0; ++i) {
      if (!job_.is_right(region, mix(i) % job_.file_pages(), i)) return kWrong;
      job_.shared().touches.fetch_add(1, std::memory_order_relaxed);
    }
    return 0;
  };
  const pid_t reader = job_.begin([&] { return as_member(read); });
  const auto fork_and_kill = [&](Runtime& runtime, Region& region) {
    uint64_t x = 1;
    for (uint64_t i = 0; i < kills; ++i) {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(read(runtime, region));
      x = mix(x + i);
      // From the first instructions after fork() to the midst of reading.
      const uint64_t until = job_.shared().touches.load() + x % 600;
      while (x % 5 != 0 && job_.shared().touches.load() < until)
        if (!job_.is_right(region, mix(until) % job_.file_pages(), x)) return kWrong;
      if (::kill(child, SIGKILL) != 0) return kWrong;
      int status = 0;
      ::waitpid(child, &status, 0);
      if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) return kWrong;
      if (Job::facts().resident_bytes > kLimit) return kWrong;
    }
    return 0;
  };
  EXPECT_EQ(job_.end(job_.begin([&] { return as_member(fork_and_kill); })), 0);
  while (Job::facts().members.size() != 1) ::sched_yield();
  const auto beside = [](const BufferFacts& facts) {
    return facts.coming_bytes + facts.used_bytes - facts.resident_bytes;
  };
  while (beside(Job::facts()) > 256 << 10) ::sched_yield();
  job_.shared().is_over.store(1);
  EXPECT_EQ(job_.end(reader), 0);
}

// A file that the child maps as well is shared, whichever of the two it has first; of its parent's
// runtimes each has one in its place.
TEST_F(Forked, ARuntimeStartedAfterAForkIsTheOneOfTheFirstTouch) {
  EXPECT_EQ(in_member([&](Runtime& parents, Region& region) {
              for (const bool is_touched_first : {false, true}) {
                const int status = status_in_child([&] {
                  if (is_touched_first && !is_all_right(region, 2)) return kWrong;
                  {
                    auto runtime = start_after_fork(parents, Job::options(kLimit));
                    if (!runtime) return kNoRuntime;
                    auto mine = runtime.value().map(job_.path());
                    if (!mine || !mine.value().is_shared()) return kNotShared;
                    if (!is_all_right(mine.value(), 3) || !is_all_right(region, 4)) return kWrong;
                    if (runtime.value().metrics().regions.size() != 2) return kNotShared;
                    auto again = start_after_fork(parents, Job::options(kLimit));
                    if (!again || again.value().metrics().regions.size() != 2) return kNoRuntime;
                    const int of_grandchild = status_in_child([&] {
                      auto its = start_after_fork(runtime.value(), Job::options(kLimit));
                      if (!its || !is_all_right(region, 5)) return kWrong;
                      return its.value().metrics().regions.size() == 1 ? 0 : kNotShared;
                    });
                    if (of_grandchild != 0) return of_grandchild;
                  }
                  // The parent's region holds the runtime.
                  if (!is_all_right(region, 6) || !is_member(::getpid())) return kWrong;
                  return Job::facts().files == 1 ? 0 : kNotShared;
                });
                if (status != 0) return status;
              }
              return is_all_right(region, 7) ? 0 : kWrong;
            }),
            0);
}

TEST_F(Forked, ARuntimeStartedAfterAForkOutsideOfTheBufferIsAnother) {
  EXPECT_EQ(in_member([&](Runtime& parents, Region& region) {
              {
                auto here = start_after_fork(parents, Job::options(kLimit));  // this is no child
                if (!here || !here.value().metrics().regions.empty()) return kNoRuntime;
              }
              return status_in_child([&] {
                RuntimeOptions options = Job::options(kLimit);
                options.buffer = "none";
                auto runtime = start_after_fork(parents, options);
                if (!runtime) return kNoRuntime;
                auto mine = runtime.value().map(job_.path());
                if (!mine || mine.value().is_shared() || is_member(::getpid())) return kNotShared;
                if (!is_all_right(mine.value(), 2) || !is_all_right(region, 3)) return kWrong;
                return is_member(::getpid()) ? 0 : kNotShared;
              });
            }),
            0);
}

}  // namespace
}  // namespace outcore
