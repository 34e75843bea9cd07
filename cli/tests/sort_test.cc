// What `outcore bench sort` of several processes is made of: partitions by several workers, the
// list that they share, also when one of them dies; and its runs.
#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "bench/partition.h"
#include "bench/random.h"
#include "bench/shared_object.h"
#include "bench/sort_list.h"
#include "bench/threads.h"
#include "cli/tests/disturbed_bench.h"
#include "core/os/kernel_features.h"

namespace outcore::cli {
namespace {

using bench::JointPartition;
using bench::SharedObject;
using bench::SortList;
using bench::SortTask;
using bench::WordRange;

constexpr uint64_t kBlock = JointPartition::kBlockWords;

// Words of which so many differ.
std::vector<uint64_t> some_words(uint64_t count, uint64_t different) {
  bench::Random random(count + different);
  std::vector<uint64_t> words(count);
  for (uint64_t& word : words) word = random.below(different);
  return words;
}

// What it takes to sort a list, on so many threads, which all end.
void sort_all(SortList& list, std::vector<uint64_t>& words, unsigned threads) {
  bench::on_threads(threads, [&](unsigned) {
    for (WordRange range;;) {
      const SortTask task = list.next(range, [] { return false; });
      if (task == SortTask::kNothing) return;
      ASSERT_NE(task, SortTask::kFailed);
      if (task == SortTask::kSort) {
        std::sort(words.begin() + static_cast<int64_t>(range.first),
                  words.begin() + static_cast<int64_t>(range.end));
        list.done();
        continue;
      }
      if (task == SortTask::kBegin) list.begin(range, bench::pivot_of(range.in(words.data())));
      list.take_part(words.data());
    }
  });
}

TEST(JointPartitions, SortWhateverTheWordsAreAndHoweverManyWorkers) {
  const uint64_t count = 20 * kBlock + 77;
  for (const uint64_t different : {uint64_t{1}, uint64_t{2}, uint64_t{100}, ~uint64_t{0}})
    for (const unsigned threads : {1U, 2U, 7U}) {
      std::vector<uint64_t> words = some_words(count, different), sorted = words;
      std::sort(sorted.begin(), sorted.end());
      // Of all sizes down to one that is less than a block for each worker.
      const SharedObject<SortList> list(WordRange{0, count}, 2 * kBlock);
      ASSERT_NE(list.get(), nullptr);
      sort_all(*list.get(), words, threads);
      EXPECT_EQ(words, sorted) << different << " different, " << threads << " threads";
    }
}

TEST(JointPartitions, EndWithTwoPartsAlsoIfThePivotIsTheSmallestOrTheLargest) {
  for (const uint64_t pivot : {uint64_t{0}, uint64_t{5}}) {
    std::vector<uint64_t> words(3 * kBlock, 5 - pivot);
    words[kBlock] = pivot;
    JointPartition partition;
    partition.begin({0, words.size()}, pivot);
    partition.join();
    bench::BlockPair pair;
    for (;;) {
      if (pair.left.size() == 0) pair.left = partition.take_left().value_or(WordRange{});
      if (pair.right.size() == 0) pair.right = partition.take_right().value_or(WordRange{});
      if (pair.left.size() == 0 || pair.right.size() == 0) break;
      pair.exchange(words.data(), pivot);
    }
    ASSERT_TRUE(partition.leave(pair));
    const auto middle = static_cast<int64_t>(partition.finish(words.data()));
    ASSERT_GT(middle, 0);
    ASSERT_LT(static_cast<size_t>(middle), words.size());
    EXPECT_LE(*std::max_element(words.begin(), words.begin() + middle),
              *std::min_element(words.begin() + middle, words.end()));
  }
}

// A child that does something to the list, and is killed there.
void in_a_killed_child(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST(SortLists, NobodyWaitsForARangeOfAProcessThatDied) {
  for (const uint64_t joint_words_min : {uint64_t{0}, kBlock}) {
    const SharedObject<SortList> list(WordRange{0, 4 * kBlock}, joint_words_min);
    ASSERT_NE(list.get(), nullptr);
    in_a_killed_child([&] {
      WordRange range;
      (void)list.get()->next(range, [] { return false; });
    });
    WordRange range;
    int looks = 0;  // the run fails when somebody has noticed the death
    EXPECT_EQ(list.get()->next(range, [&] { return ++looks == 3; }), SortTask::kFailed);
  }
}

TEST(RobustMutexes, FailForAllWhenTheOwnerHasDied) {
  const SharedObject<bench::RobustMutex> mutex;
  ASSERT_NE(mutex.get(), nullptr);
  ASSERT_TRUE(mutex.get()->lock());
  mutex.get()->unlock();
  in_a_killed_child([&] { (void)mutex.get()->lock(); });
  EXPECT_FALSE(mutex.get()->lock());
  EXPECT_FALSE(mutex.get()->lock());
}

class SortRun : public DisturbedBench {
 protected:
  // The processes that sort: they have mapped the data, or a buffer.
  std::vector<pid_t> sorters() const {
    std::vector<pid_t> all;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const auto text = [&](const char* name) {
        std::ifstream file(entry.path() / name);
        std::ostringstream all_of_it;
        all_of_it << file.rdbuf();  // nothing, if the process ends just now
        return all_of_it.str();
      };
      const auto id =
          static_cast<pid_t>(std::strtoul(entry.path().filename().c_str(), nullptr, 10));
      if (id <= 0 || text("comm") != "outcore\n" ||
          text("cmdline").find(dir()) == std::string::npos)
        continue;
      const std::string maps = text("maps");
      if (maps.find(path("data")) != std::string::npos || maps.find("memfd:") != std::string::npos)
        all.push_back(id);
    }
    return all;
  }
  // One of four processes is killed when all have mapped the data.
  Outcome with_a_kill(const std::string& memory) const {
    Outcome outcome;
    std::atomic<bool> is_over{false};
    std::thread run([&] {
      outcome = bench("sort --size 64M --budget 32M --processes 4 --threads 1 --memory " + memory +
                      " --store " + path("data"));
      is_over = true;
    });
    std::vector<pid_t> all;
    while (!is_over && (all = sorters()).size() < 4) std::this_thread::yield();
    EXPECT_EQ(all.size(), 4U) << "it ended before";
    if (all.size() == 4) ::kill(all[2], SIGKILL);
    run.join();
    return outcome;
  }
};

TEST_F(SortRun, OfSeveralProcessesIsRightWithMoreMemoryAndLess) {
  for (const char* processes : {"1", "2", "4"})
    for (const char* budget : {"8M", "32M"}) {
      const Outcome outcome = bench(
          std::string("sort --size 18M --threads 1 --json --memory mmap,mmap-random,outcore") +
          " --processes " + processes + " --budget " + budget);
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      ASSERT_EQ(outcome.lines().size(), 3U);
      for (const auto& line : outcome.lines()) {
        EXPECT_EQ(line["checked"], true);
        EXPECT_EQ(line["processes"], std::stoi(processes));
        EXPECT_EQ(line.value("shared", false),
                  line["memory"] == "outcore" && std::string(processes) != "1");
        // Each word is brought in its last order by one process.
        const double words = line.value("rate", 0.0) * line.value("seconds", 0.0);
        EXPECT_NEAR(words, 18 << 17, 10);
      }
    }
}

// Its limit has room for what each process has beside a buffer that is full of written pages.
TEST_F(SortRun, OfSeveralProcessesInHalfOfItsDataIsNotEnded) {
  for (const char* processes : {"2", "4"}) {
    const Outcome outcome =
        bench(std::string("sort --size 64M --threads 1 --budget 32M --json --memory outcore") +
              " --processes " + processes);
    ASSERT_EQ(outcome.status, 0) << processes << " processes: " << outcome.err;
    EXPECT_EQ(outcome.lines().front()["checked"], true);
  }
}

TEST_F(SortRun, OfThreadsInSeveralProcessesIsRightByMessagesToo) {
  const auto kernel = os::detect_kernel_features("all");
  ASSERT_TRUE(kernel.ok()) << kernel.message();
  if (!kernel.value().has_messages) GTEST_SKIP() << kernel.value().why_no_messages;
  const Outcome outcome = bench(
      "sort --size 8M --threads 3 --processes 2 --budget 4M --memory outcore --json --delivery "
      "messages");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.lines().front()["checked"], true);
}

TEST_F(SortRun, EndsInOneLineWhenAProcessIsKilled) {
  for (const char* memory : {"mmap", "outcore"}) {
    const Outcome outcome = with_a_kill(memory);
    EXPECT_EQ(outcome.status, 1) << memory;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("signal 9"), std::string::npos) << outcome.err;
  }
}

TEST_F(SortRun, OfWordsThatSomebodyElseWritesIsNotRight) {
  const Outcome outcome = disturbed("sort --size 8M --processes 4 --threads 1 --overwrite");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_EQ(outcome.err.rfind("outcore: sort in mmap: ", 0), 0U) << outcome.err;
}

TEST_F(SortRun, OfSeveralProcessesIsRefusedWhereTheyCannotShareTheWords) {
  for (const char* more :
       {"--memory dram", "--memory swap", "--memory outcore --share off", "--page 64k",
        "--budget 1M", "--frames private", "--store redis://node:7000/x --memory outcore"}) {
    const Outcome outcome = bench(std::string("sort --size 8M --processes 2 ") + more);
    EXPECT_EQ(outcome.status, 2) << more;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("outcore: ", 0), 0U) << outcome.err;
    EXPECT_EQ(outcome.err.find("or use --share off"), std::string::npos) << outcome.err;
  }
}

}  // namespace
}  // namespace outcore::cli
