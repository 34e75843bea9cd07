// Processes that share a buffer, under seeded simulation with deaths: docs/internals/simulation.md.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "core/tests/sim/buffer_simulation.h"
#include "core/tests/sim/seeds.h"
#include "tests/folder.h"

// A function of LeakSanitizer, if it is there: killed processes leave what they had.
extern "C" [[gnu::weak]] void __lsan_disable();

namespace outcore::sim {
namespace {

using Kind = BufferPlan::Kind;
using Tally = BufferWorld::Tally;

// On a thread of its own, so that the engine's thread-local data starts fresh with each seed.
bool run(BufferSimulation& simulation) {
  bool is_good = false;
  std::thread([&] { is_good = simulation.run(); }).join();
  return is_good;
}

// One seed. In a process apart: what killed processes leave goes with it.
bool run_plan(const BufferPlan& plan, const std::string& test, Tally* sum) {
  const std::string title = title_of(plan.seed, plan.describe(), test);
  BufferSimulation simulation(plan, number_from("OUTCORE_SIM_TRACE", 0) != 0);
  const SeedUnderWay under_way(simulation.fibers(), title);
  const bool is_good = run(simulation);
  if (!is_good)
    std::fprintf(stderr, "%s\n%s\n", title.c_str(), simulation.fibers().failure().c_str());
  const Tally& its = simulation.tally();
  sum->touches += its.touches, sum->faults += its.faults, sum->failures += its.failures;
  sum->flushes += its.flushes, sum->pins += its.pins, sum->joins += its.joins;
  sum->refusals += its.refusals, sum->kills += its.kills, sum->stops += its.stops;
  sum->takeovers += its.takeovers, sum->victims += its.victims, sum->steps += its.steps;
  sum->left_to_heirs += its.left_to_heirs;
  return is_good;
}

// Status of a process that runs these seeds, as wait() has it.
template <typename Run>
int run_apart(const Run& run) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    if (&__lsan_disable != nullptr) __lsan_disable();
    struct rlimit files {};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    const bool is_good = run();
    std::fflush(nullptr);
    ::_exit(is_good ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

void run_seeds(Kind kind, const char* test) {
  constexpr uint64_t kUsual = 100, kTogether = 10;
  const SeedRange seeds = seeds_to_run(kUsual);
  void* const shared =
      ::mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const sum = new (shared) Tally;
  for (uint64_t first = seeds.first; first < seeds.first + seeds.count; first += kTogether) {
    const uint64_t end = std::min(first + kTogether, seeds.first + seeds.count);
    const int status = run_apart([&] {
      bool is_good = true;
      for (uint64_t seed = first; seed < end && is_good; ++seed)
        is_good = run_plan(BufferPlan::make(seed, kind), test, sum);
      return is_good;
    });
    ASSERT_EQ(status, 0) << "one of the seeds from " << first << " on: see above";
  }
  std::printf(
      "%llu seeds, %llu steps: %llu touches, %llu faults (%llu failed), %llu flushes, %llu pins; "
      "%llu processes (%llu without the file), %llu kills (%llu left to heirs), "
      "%llu stops, %llu that keep, %llu pages left to who fills\n",
      static_cast<unsigned long long>(seeds.count), static_cast<unsigned long long>(sum->steps),
      static_cast<unsigned long long>(sum->touches), static_cast<unsigned long long>(sum->faults),
      static_cast<unsigned long long>(sum->failures), static_cast<unsigned long long>(sum->flushes),
      static_cast<unsigned long long>(sum->pins), static_cast<unsigned long long>(sum->joins),
      static_cast<unsigned long long>(sum->refusals), static_cast<unsigned long long>(sum->kills),
      static_cast<unsigned long long>(sum->left_to_heirs),
      static_cast<unsigned long long>(sum->stops), static_cast<unsigned long long>(sum->takeovers),
      static_cast<unsigned long long>(sum->victims));
  // What never happens is not tested.
  if (seeds.count >= 50) {
    EXPECT_GT(sum->kills, seeds.count);
    EXPECT_GT(sum->stops, seeds.count / 2);
    EXPECT_GT(sum->takeovers, seeds.count);
    EXPECT_GT(sum->victims, seeds.count);
    EXPECT_GT(sum->pins, seeds.count);
    EXPECT_EQ(sum->left_to_heirs != 0, kind == Kind::kWritten);
  }
  ::munmap(shared, sizeof(Tally));
}

TEST(BufferSimulation, ReadersSurviveDeaths) {
  run_seeds(Kind::kRead, "BufferSimulation.ReadersSurviveDeaths");
}

TEST(BufferSimulation, WritersSurviveDeaths) {
  run_seeds(Kind::kWritten, "BufferSimulation.WritersSurviveDeaths");
}

// What the simulation says of the first of some seeds that it finds wrong; empty: of none.
std::string first_failure(BufferSimFrames::Defect defect) {
  constexpr uint64_t kSeeds = 20;
  scene::Folder folder;
  const std::string path = folder / "said";
  static_cast<void>(run_apart([&] {
    ::freopen(path.c_str(), "w", stderr);
    bool is_good = true;
    Tally sum;
    for (uint64_t seed = 1; seed <= kSeeds && is_good; ++seed) {
      BufferPlan plan = BufferPlan::make(seed, Kind::kWritten);
      plan.defect = defect;
      is_good = run_plan(plan, "SimulationItself", &sum);
    }
    return is_good;
  }));
  std::ifstream said(path);
  return {std::istreambuf_iterator<char>(said), std::istreambuf_iterator<char>()};
}

TEST(BufferSimulationItself, FindsFramesThatForgetToProtect) {
  const std::string failure = first_failure(BufferSimFrames::Defect::kForgetsToProtect);
  EXPECT_NE(failure.find("was written"), std::string::npos) << failure;
}

TEST(BufferSimulationItself, FindsFramesThatInstallOtherBytes) {
  const std::string failure = first_failure(BufferSimFrames::Defect::kInstallsZeros);
  EXPECT_NE(failure.find("was written"), std::string::npos) << failure;
}

TEST(BufferSimulationItself, RunsASeedTheSameWayTwice) {
  uint64_t hash[2] = {};
  for (uint64_t& its : hash) {
    void* const shared =
        ::mmap(nullptr, sizeof its, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    EXPECT_EQ(run_apart([&] {
                BufferSimulation simulation(BufferPlan::make(7, Kind::kWritten), false);
                const bool is_good = run(simulation);
                *static_cast<uint64_t*>(shared) = simulation.fibers().trace_hash();
                return is_good;
              }),
              0);
    its = *static_cast<const uint64_t*>(shared);
    ::munmap(shared, sizeof its);
  }
  EXPECT_EQ(hash[0], hash[1]);
}

}  // namespace
}  // namespace outcore::sim
