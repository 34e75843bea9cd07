// BudgetGovernor: has the budget of a runtime follow what the machine and its cgroups have left
// (budget = auto). A thread of its own looks every tenth of a second, every fiftieth while memory
// is being taken, and resizes; what is right BudgetForecast decides.
//
// Any thread may call it, but no signal handler and nobody on the fault path. A forked child has no
// such thread and must not end it: see Runtime::Impl.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/budget/budget_forecast.h"
#include "core/metrics/counter_block.h"
#include "core/os/memory_pressure.h"
#include "core/os/wait.h"
#include "core/paging/engine.h"
#include "outcore/result.h"

namespace outcore::runtime {

class BudgetGovernor {
 public:
  static constexpr uint64_t kPeriodNs = budget::BudgetForecast::kPeriodNs;
  static constexpr uint64_t kUrgentNs = 20'000'000;
  // A piece of a shrink takes no longer, nor than an eighth of a fill's wait. It is tried again,
  // each time after twice the time if nothing leaves.
  static constexpr uint64_t kShrinkWaitNs = 1'000'000'000, kRetryNsMax = 2'000'000'000;
  // A shrink goes in pieces of a share of the budget, and not of little: fills wait while
  // one is evicted, and go on while it rests; what has left stays away if the rest cannot leave.
  static constexpr uint64_t kRestNsLeast = 1'000'000, kRestNsMax = 250'000'000;
  static constexpr uint64_t kPieceShare = 32, kPieceLeast = uint64_t{16} << 20;

  struct Reading {
    uint64_t available_bytes = 0, limit_bytes = 0;
    std::optional<os::MemoryPressure> pressure;
  };
  // What the machine and the cgroups have left now; nullopt: that cannot be read.
  using Meter = std::function<std::optional<Reading>()>;
  struct Options {
    uint64_t min_bytes = 0, max_bytes = 0;  // of the budget. REQUIRES: min <= max
    uint64_t shrink_wait_ns_max = kShrinkWaitNs;
  };

  // Of this machine. `root` contains proc and sys: "/", or a made-up tree in tests. Errors: EMFILE,
  // ENFILE, ENOMEM (what it reads could not be opened), ENOTSUP (it says nothing).
  static Result<Meter> machine_meter(const std::string& root = "/");

  // No thread runs before start(). `counters` gets what is decided. REQUIRES: both live longer.
  BudgetGovernor(paging::Engine& engine, metrics::CounterBlock& counters, const Options& options,
                 Meter meter);
  BudgetGovernor(const BudgetGovernor&) = delete;
  BudgetGovernor& operator=(const BudgetGovernor&) = delete;
  ~BudgetGovernor();  // end()

  Status start();  // EAGAIN: no thread could be started
  // The budget stays as it is. Waits for the piece of a shrink that is under way. One thread.
  void end();
  // What the program says counts from now on: resizes as Engine::resize_budget(), and if that
  // succeeds, nothing is followed any more. Waits for the piece of a shrink that is under way.
  Status fix(uint64_t bytes);

  // One look, and what follows from it. `now_ns`: never less than before. Returns after how many
  // nanoseconds to look again; 0: never.
  uint64_t step(uint64_t now_ns);
  const Options& options() const { return options_; }
  uint64_t shrink_ns_max() const { return shrink_ns_max_.load(std::memory_order_relaxed); }

 private:
  void run();
  // True if all of it was possible. REQUIRES: deciding_.
  bool shrink(uint64_t before_bytes, uint64_t bytes);
  void rest(uint64_t piece_ns);
  bool grow(uint64_t bytes);

  paging::Engine& engine_;
  metrics::CounterBlock& counters_;
  const Options options_;
  const Meter meter_;
  os::Lock deciding_;
  budget::BudgetForecast forecast_;  // with deciding_
  bool is_fixed_ = false;            // likewise
  uint64_t retry_ns_ = kPeriodNs;    // likewise: the pause after the next failure
  std::atomic<uint64_t> shrink_ns_max_{0};
  std::atomic<uint32_t> is_ending_{0};
  std::atomic<uint32_t> interruptions_{0};  // of shrinks: by end(), and fix() while it waits
  std::thread thread_;
};

}  // namespace outcore::runtime
