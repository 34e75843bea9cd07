// The engine under seeded simulation: see docs/internals/simulation.md.
//
// OUTCORE_SIM_SEEDS=N runs N seeds of each kind of frames, OUTCORE_SIM_SEED=S only that one,
// OUTCORE_SIM_TRACE=1 prints every event.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "tests/sim/simulation.h"

namespace outcore::sim {
namespace {

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

Simulation* under_way = nullptr;
std::string under_way_title;

// An assertion of the engine: say which seed it was.
void on_abort(int) {
  std::string text = under_way_title + "\n";
  if (under_way != nullptr) text += under_way->fibers().report("an assertion failed");
  const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(ignored);
  ::signal(SIGABRT, SIG_DFL);
  ::abort();
}

struct Outcome {
  bool is_good = false;
  std::string failure;
  uint64_t trace_hash = 0;
  Simulation::Tally tally;
};

// On a thread of its own: what the engine keeps by thread starts fresh with each seed.
Outcome run_plan(const Plan& plan, const std::string& title = "a simulation") {
  Outcome outcome;
  std::thread([&] {
    auto* simulation = new Simulation(plan, number_from("OUTCORE_SIM_TRACE", 0) != 0);
    under_way = simulation;
    under_way_title = title;
    const auto before = ::signal(SIGABRT, on_abort);
    outcome.is_good = simulation->run();
    ::signal(SIGABRT, before);
    under_way = nullptr;
    outcome.failure = simulation->failure();
    outcome.trace_hash = simulation->trace_hash();
    outcome.tally = simulation->tally();
    // After a failure fibers are still inside it.
    if (outcome.is_good) delete simulation;
  }).join();
  return outcome;
}

void run_seeds(FramesModel model, const char* test) {
  const uint64_t only = number_from("OUTCORE_SIM_SEED", 0);
  const uint64_t seeds = only != 0 ? 1 : number_from("OUTCORE_SIM_SEEDS", 120);
  Simulation::Tally sum;
  for (uint64_t i = 0; i < seeds; ++i) {
    const Plan plan = Plan::make(only != 0 ? only : i + 1, model);
    const std::string title = "seed " + std::to_string(plan.seed) + ": " + plan.describe() +
                              "\nreplay: OUTCORE_SIM_SEED=" + std::to_string(plan.seed) +
                              " OUTCORE_SIM_TRACE=1 test_sim --gtest_filter=" + test;
    const Outcome outcome = run_plan(plan, title);
    if (!outcome.is_good) FAIL() << title << "\n" << outcome.failure;
    sum.touches += outcome.tally.touches;
    sum.faults += outcome.tally.faults;
    sum.failed_faults += outcome.tally.failed_faults;
    sum.flushes += outcome.tally.flushes;
    sum.flush_errors += outcome.tally.flush_errors;
    sum.steps += outcome.tally.steps;
  }
  std::printf("%llu seeds, %llu steps: %llu touches, %llu faults (%llu failed), %llu flushes (%llu failed)\n",
              static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(sum.steps),
              static_cast<unsigned long long>(sum.touches),
              static_cast<unsigned long long>(sum.faults),
              static_cast<unsigned long long>(sum.failed_faults),
              static_cast<unsigned long long>(sum.flushes),
              static_cast<unsigned long long>(sum.flush_errors));
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

}  // namespace
}  // namespace outcore::sim
