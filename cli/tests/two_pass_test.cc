// `outcore bench sort --memory two-pass`: the merge of sorted runs, and its runs as processes.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "bench/anonymous_memory.h"
#include "bench/random.h"
#include "bench/run_merge.h"
#include "bench/run_plan.h"
#include "bench/word_file.h"
#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

using bench::kUnitBytes;
using bench::kUnitWords;
using bench::RunPlan;
using bench::WordFile;

bench::Options options_of(uint64_t units, uint64_t budget_units, unsigned processes,
                          unsigned threads) {
  bench::Options options;
  options.size_bytes = units * kUnitBytes;
  options.budget_bytes = budget_units * kUnitBytes;
  options.processes = processes;
  options.threads = threads;
  return options;
}

TEST(RunPlans, HaveEachUnitInOneRunWithinTheMemoryOfItsProcess) {
  for (const uint64_t units : {1, 2, 7, 64, 1000})
    for (const uint64_t budget_units : {5, 16, 100})
      for (const unsigned processes : {1, 3, 4}) {
        const RunPlan plan(options_of(units, budget_units, processes, 1));
        uint64_t next = 0;
        for (uint64_t run = 0; run < plan.runs(); ++run) {
          const bench::WordRange range = plan.run(run);
          if (range.size() == 0) continue;
          EXPECT_EQ(range.first, next);
          EXPECT_LE(range.size() * sizeof(uint64_t), plan.memory_bytes());
          next = range.end;
        }
        EXPECT_EQ(next, units * kUnitWords);
        EXPECT_LE(plan.memory_bytes() * processes, budget_units * kUnitBytes);
      }
}

TEST(RunPlans, OfTooLittleMemoryHaveNobodyWhoMerges) {
  EXPECT_EQ(RunPlan(options_of(100, 10, 1, 1)).runs(), 10U);
  EXPECT_EQ(RunPlan(options_of(100, 10, 1, 1)).mergers(), 0U);
  EXPECT_EQ(RunPlan(options_of(100, 11, 1, 4)).mergers(), 1U);
  EXPECT_EQ(RunPlan(options_of(100, 50, 1, 4)).mergers(), 4U);
  EXPECT_EQ(RunPlan(options_of(100, 3, 4, 1)).mergers(), 0U);
}

class RunMerges : public CommandTest {
 protected:
  // Sorted runs of the plan, and samples of each.
  static void write_runs(const RunPlan& plan, std::span<const uint64_t> words, WordFile& to,
                         std::span<uint64_t> room) {
    for (uint64_t number = 0; number < plan.runs(); ++number) {
      const bench::WordRange range = plan.run(number);
      if (range.size() == 0) continue;
      const std::span<uint64_t> run = room.first(range.size());
      std::copy_n(words.begin() + static_cast<int64_t>(range.first), run.size(), run.begin());
      std::sort(run.begin(), run.end());
      ASSERT_TRUE(to.write(range.first, run).ok());
      for (uint64_t i = 0; i < kUnitWords; ++i) run[i] = run[i * (run.size() / kUnitWords)];
      ASSERT_TRUE(to.write(plan.samples_of(number), run.first(kUnitWords)).ok());
    }
  }
};

// Of words of which many are equal, and the largest that there are.
TEST_F(RunMerges, HaveEachWordInItsPlaceInHoweverManyParts) {
  const RunPlan plan(options_of(61, 20, 3, 1));
  const bench::AnonymousMemory memory(nullptr, plan.file_bytes());
  const std::span<uint64_t> room(reinterpret_cast<uint64_t*>(memory.bytes().data()),
                                 plan.file_bytes() / sizeof(uint64_t));
  auto runs = WordFile::make_unnamed(dir(), plan.file_bytes());
  auto to = WordFile::make_unnamed(dir(), plan.words() * sizeof(uint64_t));
  if (!runs.ok()) GTEST_SKIP() << runs.message();
  ASSERT_TRUE(to.ok()) << to.message();
  EXPECT_TRUE(std::filesystem::is_empty(dir()));
  for (const uint64_t different : {uint64_t{1}, uint64_t{3}, uint64_t{5000}, ~uint64_t{0}}) {
    bench::Random random(different);
    std::vector<uint64_t> words(plan.words());
    for (uint64_t& word : words) word = ~random.below(different);
    ASSERT_NO_FATAL_FAILURE(write_runs(plan, words, **runs, room));
    std::sort(words.begin(), words.end());
    for (const unsigned parts : {1U, 2U, 7U}) {
      uint64_t seen = 0;
      // Nothing of an earlier one may be taken for its own.
      std::fill(room.begin(), room.end(), uint64_t{0x55});
      ASSERT_TRUE((*to)->write(0, room.first(plan.words())).ok());
      for (unsigned part = 0; part < parts; ++part) {
        bench::RunMerge merge(plan, **runs, room.first((plan.runs() + 1) * kUnitWords * 2));
        const Status status = merge.merge(part, parts, **to, [&](uint64_t count) {
          seen += count;
          return true;
        });
        ASSERT_TRUE(status.ok()) << status.message();
      }
      EXPECT_EQ(seen, words.size());
      ASSERT_TRUE((*to)->read(0, room.first(plan.words())).ok());
      EXPECT_TRUE(std::equal(words.begin(), words.end(), room.begin())) << different;
    }
  }
}

class TwoPassRun : public CommandTest {
 protected:
  Outcome sort(const std::string& arguments) const {
    return run("bench sort --memory two-pass --json --dir " + dir() + " " + arguments);
  }
  static bool has_no_direct(const Outcome& outcome) {
    return outcome.err.find("O_DIRECT") != std::string::npos;
  }
  // Processes of the run that are children of another of it.
  std::vector<pid_t> children() const {
    std::map<pid_t, pid_t> parents;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const auto id =
          static_cast<pid_t>(std::strtoul(entry.path().filename().c_str(), nullptr, 10));
      std::string command, word;
      std::getline(std::ifstream(entry.path() / "cmdline"), command);
      if (id <= 0 || command.find(dir()) == std::string::npos) continue;
      std::ifstream status(entry.path() / "status");
      while (status >> word && word != "PPid:") continue;
      status >> parents[id];
    }
    std::vector<pid_t> all;
    for (const auto& [id, parent] : parents)
      if (parents.contains(parent) && is_command(id) && is_command(parent)) all.push_back(id);
    return all;
  }

 private:
  static bool is_command(pid_t id) {
    std::string name;
    std::getline(std::ifstream("/proc/" + std::to_string(id) + "/comm"), name);
    return name == "outcore";
  }
};

class TwoPassRunOf : public TwoPassRun, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Processes, TwoPassRunOf, testing::Values("1", "2", "4"));

// The size is not a multiple of any run; in a sixteenth four processes make 64 runs.
TEST_P(TwoPassRunOf, ProcessesIsVerifiedInAHalfAndLessByAnyThreads) {
  for (const char* budget : {"8M", "4M", "1060k"})
    for (const char* threads : {"1", "3"}) {
      const std::string arguments = std::string("--size 16652k --budget ") + budget +
                                    " --processes " + GetParam() + " --threads " + threads;
      const Outcome outcome = sort(arguments);
      if (has_no_direct(outcome)) GTEST_SKIP() << outcome.err;
      ASSERT_EQ(outcome.status, 0) << arguments << ": " << outcome.err;
      const Json line = outcome.lines().front();
      EXPECT_EQ(line["checked"], true) << arguments;
      EXPECT_GE(line.value("runs", 0), 3) << arguments;
      // Each word is read for its run, and again for the merge.
      EXPECT_GE(line.value("fills", uint64_t{0}), 2 * 4163U) << arguments;
      const double words = line.value("rate", 0.0) * line.value("seconds", 0.0);
      EXPECT_NEAR(words, 4163 * 512, 10) << arguments;
    }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir()), {}), 1);  // stderr
}

TEST_F(TwoPassRun, OfWordsThatHaveRoomIsOnePass) {
  const Outcome outcome = sort("--size 4M --budget 4M --threads 2");
  if (has_no_direct(outcome)) GTEST_SKIP() << outcome.err;
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json line = outcome.lines().front();
  EXPECT_EQ(line["checked"], true);
  EXPECT_EQ(line["runs"], 1);
  EXPECT_EQ(line["fills"], 1024);
}

TEST_F(TwoPassRun, StandsBesideTheOthers) {
  const Outcome outcome =
      run("bench sort --size 2M --budget 1M --memory mmap,two-pass,outcore --json --dir " + dir());
  if (has_no_direct(outcome)) GTEST_SKIP() << outcome.err;
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::vector<std::string> memories;
  for (const Json& line : outcome.lines()) memories.push_back(line.value("memory", ""));
  EXPECT_EQ(memories, (std::vector<std::string>{"mmap", "two-pass", "outcore"}));
}

TEST_F(TwoPassRun, IsRefusedInOneLineWhereItCannotBe) {
  for (const char* arguments :
       {"bench sort --size 4M --budget 256k --processes 4 --memory two-pass",
        "bench sort --memory two-pass --warm", "bench scan --memory two-pass",
        "bench random-io --memory two-pass", "bench bfs --memory mmap,two-pass",
        "bench sort --memory two-pass --store redis://node:7000/x"}) {
    const Outcome outcome = run(std::string(arguments) + " --dir " + dir());
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("--memory"), std::string::npos) << outcome.err;
  }
}

TEST_F(TwoPassRun, LeavesNoRunsWhenAProcessIsKilled) {
  Outcome outcome;
  std::atomic<bool> is_over{false};
  std::thread other([&] {
    outcome = sort("--size 64M --budget 32M --processes 4 --threads 1");
    is_over = true;
  });
  std::vector<pid_t> all;
  while (!is_over && (all = children()).size() < 4) std::this_thread::yield();
  if (all.size() == 4) ::kill(all[2], SIGKILL);
  other.join();
  if (has_no_direct(outcome)) GTEST_SKIP() << outcome.err;
  ASSERT_EQ(all.size(), 4U) << "it ended before";
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("signal 9"), std::string::npos) << outcome.err;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir()), {}), 1);  // stderr
}

}  // namespace
}  // namespace outcore::cli
