// The engine under seeded simulation: see docs/internals/simulation.md.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <thread>

#include "core/tests/sim/seeds.h"
#include "core/tests/sim/simulation.h"

// A function of LeakSanitizer, if it is there: a failed run leaves its fibers and what they own.
extern "C" [[gnu::weak]] void __lsan_disable();

namespace outcore::sim {
namespace {

struct Outcome {
  bool is_good = false;
  std::string failure;
  uint64_t trace_hash = 0;
  Simulation::Tally tally;
};

// On a thread of its own, so that the engine's thread-local data starts fresh with each seed.
Outcome run_plan(const Plan& plan, const std::string& title = "a simulation") {
  Outcome outcome;
  std::thread([&] {
    if (&__lsan_disable != nullptr) __lsan_disable();
    auto* simulation = new Simulation(plan, number_from("OUTCORE_SIM_TRACE", 0) != 0);
    {
      const SeedUnderWay under_way(simulation->fibers(), title);
      outcome.is_good = simulation->run();
    }
    outcome.failure = simulation->failure();
    outcome.trace_hash = simulation->trace_hash();
    outcome.tally = simulation->tally();
    // After a failure, fibers are still inside the simulation.
    if (outcome.is_good) delete simulation;
  }).join();
  return outcome;
}

void run_seeds(FramesModel model, const char* test) {
  const SeedRange seeds = seeds_to_run(120);
  Simulation::Tally sum;
  for (uint64_t i = 0; i < seeds.count; ++i) {
    const Plan plan = Plan::make(seeds.first + i, model);
    const std::string title = title_of(plan.seed, plan.describe(), test);
    const Outcome outcome = run_plan(plan, title);
    if (!outcome.is_good) FAIL() << title << "\n" << outcome.failure;
    sum.touches += outcome.tally.touches;
    sum.faults += outcome.tally.faults;
    sum.failed_faults += outcome.tally.failed_faults;
    sum.flushes += outcome.tally.flushes;
    sum.flush_errors += outcome.tally.flush_errors;
    sum.reshapes += outcome.tally.reshapes;
    sum.refused_reshapes += outcome.tally.refused_reshapes;
    sum.cuts += outcome.tally.cuts;
    sum.failed_cuts += outcome.tally.failed_cuts;
    sum.frozen_pages += outcome.tally.frozen_pages;
    sum.steps += outcome.tally.steps;
  }
  std::printf(
      "%llu seeds, %llu steps: %llu touches, %llu faults (%llu failed), %llu flushes (%llu "
      "failed), %llu reshapes (%llu refused), %llu cuts (%llu refused, %llu pages frozen)\n",
      static_cast<unsigned long long>(seeds.count), static_cast<unsigned long long>(sum.steps),
      static_cast<unsigned long long>(sum.touches), static_cast<unsigned long long>(sum.faults),
      static_cast<unsigned long long>(sum.failed_faults),
      static_cast<unsigned long long>(sum.flushes),
      static_cast<unsigned long long>(sum.flush_errors),
      static_cast<unsigned long long>(sum.reshapes),
      static_cast<unsigned long long>(sum.refused_reshapes),
      static_cast<unsigned long long>(sum.cuts), static_cast<unsigned long long>(sum.failed_cuts),
      static_cast<unsigned long long>(sum.frozen_pages));
}

TEST(EngineSimulation, SharedFramesLoseNoByte) {
  run_seeds(FramesModel::kShared, "EngineSimulation.SharedFramesLoseNoByte");
}

TEST(EngineSimulation, PrivateFramesLoseNoByte) {
  run_seeds(FramesModel::kPrivate, "EngineSimulation.PrivateFramesLoseNoByte");
}

TEST(EngineSimulation, ProtectedFramesLoseNoByte) {
  run_seeds(FramesModel::kProtected, "EngineSimulation.ProtectedFramesLoseNoByte");
}

TEST(EngineSimulation, ASeedReplaysStepByStep) {
  for (const FramesModel model :
       {FramesModel::kShared, FramesModel::kPrivate, FramesModel::kProtected}) {
    const Plan plan = Plan::make(7, model);
    const Outcome once = run_plan(plan), again = run_plan(plan);
    EXPECT_EQ(once.tally.steps, again.tally.steps);
    EXPECT_EQ(once.trace_hash, again.trace_hash);
    EXPECT_NE(once.trace_hash, run_plan(Plan::make(8, model)).trace_hash);
  }
}

// The simulation must be able to fail: something is broken on purpose, and must be found within few
// seeds.
template <typename Break>
std::string first_failure(FramesModel model, const Break& break_it) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Plan plan = Plan::make(seed, model);
    // Nothing else fails, so what is found is what was broken.
    plan.has_faults = false;
    plan.refusals = {};
    plan.has_cuts = false;
    plan.behaviour = {};
    plan.wait_ns_max = 20'000'000'000;
    break_it(plan);
    const Outcome outcome = run_plan(plan);
    if (!outcome.is_good) return outcome.failure;
  }
  return {};
}

TEST(SimulationItself, FindsFramesThatForgetWhatWasWrittenAtUnmap) {
  const std::string failure = first_failure(FramesModel::kShared, [](Plan& plan) {
    plan.defect = SimFrames::Defect::kForgetsWrittenAtUnmap;
  });
  EXPECT_NE(failure.find("was written"), std::string::npos) << failure;
}

TEST(SimulationItself, FindsFramesThatInstallOtherBytes) {
  const std::string failure = first_failure(
      FramesModel::kPrivate, [](Plan& plan) { plan.defect = SimFrames::Defect::kInstallsZeros; });
  EXPECT_NE(failure.find("was written"), std::string::npos) << failure;
}

TEST(SimulationItself, FindsFramesThatForgetToProtect) {
  const std::string failure = first_failure(FramesModel::kPrivate, [](Plan& plan) {
    plan.defect = SimFrames::Defect::kForgetsToProtect;
  });
  EXPECT_NE(failure.find("was written"), std::string::npos) << failure;
}

TEST(SimulationItself, FindsALookThatOverlooksWhatWasWritten) {
  const std::string failure = first_failure(FramesModel::kShared, [](Plan& plan) {
    plan.defect = SimFrames::Defect::kOverlooksWritten;
    plan.has_cuts = true;
  });
  EXPECT_NE(failure.find("a cut has another byte"), std::string::npos) << failure;
}

TEST(SimulationItself, FindsFramesThatKeepWhatIsOverwritten) {
  for (const FramesModel model :
       {FramesModel::kShared, FramesModel::kPrivate, FramesModel::kProtected}) {
    const std::string failure = first_failure(model, [](Plan& plan) {
      plan.defect = SimFrames::Defect::kForgetsToOverwrite;
      plan.has_reshapes = true;
      for (FilePlan& file : plan.files) file.is_read_only = true;
    });
    EXPECT_NE(failure.find("was written"), std::string::npos) << failure;
  }
}

TEST(SimulationItself, FindsAStoreThatLiesAboutAWrite) {
  const std::string failure = first_failure(
      FramesModel::kShared, [](Plan& plan) { plan.behaviour.lies_about_writes = true; });
  EXPECT_NE(failure.find("was written"), std::string::npos) << failure;
}

TEST(SimulationItself, TellsEveryFibersPlaceWhenItFails) {
  const std::string failure = first_failure(
      FramesModel::kShared, [](Plan& plan) { plan.behaviour.lies_about_writes = true; });
  EXPECT_NE(failure.find("fibers, and where they are"), std::string::npos) << failure;
  EXPECT_NE(failure.find("main "), std::string::npos) << failure;
}

TEST(Fibers, AWakeThatIsForgottenIsFound) {
  Fibers fibers(1, {});
  std::atomic<uint32_t> word{0};
  fibers.add("sleeper", [&] {
    while (word.load() == 0) os::wait(&word, 0, 1'000'000);
  });
  fibers.add("other", [&] {
    fibers.let_pass(10'000);
    word = 1;  // and no wake_all
  });
  EXPECT_FALSE(fibers.run());
  EXPECT_NE(fibers.failure().find("lost wake-up"), std::string::npos) << fibers.failure();
}

TEST(Fibers, TwoThatWaitForEachOtherAreALivelock) {
  Fibers fibers(1, {.steps_max = 10'000});
  std::atomic<uint32_t> first{0}, second{0};
  fibers.add("one", [&] {
    while (first.load() == 0) os::wait(&first, 0, 1'000'000);
    second = 1;
  });
  fibers.add("two", [&] {
    while (second.load() == 0) os::wait(&second, 0, 1'000'000);
    first = 1;
  });
  EXPECT_FALSE(fibers.run());
  EXPECT_NE(fibers.failure().find("livelock"), std::string::npos) << fibers.failure();
}

}  // namespace
}  // namespace outcore::sim
