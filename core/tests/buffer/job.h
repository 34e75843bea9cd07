// Job: processes of a test that share a buffer, and the file that they read. The process of the
// test is no member itself, and has no runtime: what it forks begins anew.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "core/tests/conformance/common.h"
#include "outcore/buffers.h"
#include "outcore/region.h"
#include "outcore/runtime.h"
#include "tests/folder.h"

namespace outcore::scene {

constexpr uint64_t kPage = 4096;

inline uint64_t mix(uint64_t x) {
  x *= 0x9E3779B97F4A7C15ull;
  x ^= x >> 32, x *= 0xD6E8FEB86659FD93ull;
  return x ^ x >> 32;
}

// The limit of most jobs, and how a process of one ends that finds something wrong.
namespace of_job {
constexpr uint64_t kLimit = 8 << 20;
constexpr int kWrong = 50, kNoRuntime = 51, kNoRegion = 52, kNotShared = 53, kLeak = 54;
}  // namespace of_job

class Job {
 public:
  // What all processes of the job see.
  struct Shared {
    std::atomic<uint32_t> is_over{0}, arrived{0}, gate{0};
    std::atomic<uint64_t> read_bytes{0}, touches{0}, longest_ns{0};
  };

  explicit Job(uint64_t file_pages) : file_pages_(file_pages) {
    ::setenv("OUTCORE_BUFFER_DIR", (folder_ / "buffers").c_str(), 1);
    std::vector<uint64_t> words(file_pages * kPage / 8);
    for (uint64_t i = 0; i < words.size(); ++i) words[i] = word(i);
    FILE* const file = std::fopen(path().c_str(), "w");
    EXPECT_EQ(std::fwrite(words.data(), 8, words.size(), file), words.size());
    EXPECT_EQ(std::fclose(file), 0);
    settle(path());
  }
  ~Job() {
    for (const pid_t process : processes_) ::kill(process, SIGKILL), status_of(process);
    ::unsetenv("OUTCORE_BUFFER_DIR");
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // What has changed just now is not shared: waits until that is long enough ago.
  static void settle(const std::string& path) {
    const auto is_fresh = [&] {
      struct stat about;
      timespec now{};
      EXPECT_EQ(::stat(path.c_str(), &about), 0);
      EXPECT_EQ(::clock_gettime(CLOCK_REALTIME, &now), 0);
      return (now.tv_sec - about.st_ctim.tv_sec) * 1'000'000'000 +
                 (now.tv_nsec - about.st_ctim.tv_nsec) <
             20'000'000;
    };
    while (is_fresh()) ::sched_yield();
  }

  static uint64_t word(uint64_t i) { return mix(i + 1); }
  std::string path() const { return folder_ / "data"; }
  const Folder& folder() const { return folder_; }
  Shared& shared() const { return shared_[0]; }
  uint64_t file_pages() const { return file_pages_; }
  uint64_t file_bytes() const { return file_pages_ * kPage; }

  // In a process of the job.
  static RuntimeOptions options(uint64_t budget_bytes) {
    RuntimeOptions options;
    options.ignore_environment = true;
    options.budget_bytes = budget_bytes;
    options.buffer = "job";
    return options;
  }
  // True if the page has the file's words where it is looked at.
  bool is_right(const Region& region, uint64_t page, uint64_t chance) const {
    const uint64_t i = page * kPage / 8 + chance % (kPage / 8);
    return reinterpret_cast<const volatile uint64_t*>(region.data())[i] == word(i);
  }

  // Runs `work` in a new process; its result is the exit status. 100: it threw, or a check failed.
  pid_t begin(const std::function<int()>& work) {
    const pid_t process = ::fork();
    if (process == 0) ::_exit(work());
    processes_.push_back(process);
    return process;
  }
  // The exit status; -signal.
  int end(pid_t process) {
    std::erase(processes_, process);
    return status_of(process);
  }
  void kill(pid_t process) {
    ::kill(process, SIGKILL);
    end(process);
  }
  const std::vector<pid_t>& processes() const { return processes_; }

  // What is known of the buffer; a limit of 0: nobody is in it.
  static BufferFacts facts() {
    const auto all = list_buffers();
    EXPECT_TRUE(all.ok()) << all.message();
    return all.ok() && !all.value().empty() ? all.value().front() : BufferFacts{};
  }

 private:
  const Folder folder_;
  const uint64_t file_pages_;
  const Common<Shared> shared_;
  std::vector<pid_t> processes_;
};

}  // namespace outcore::scene
