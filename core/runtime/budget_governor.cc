#include "core/runtime/budget_governor.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/memory_limit.h"

namespace outcore::runtime {

using metrics::Counter;

Result<BudgetGovernor::Meter> BudgetGovernor::machine_meter(const std::string& root) {
  struct Meters {
    explicit Meters(const std::string& root) : memory(root), pressure(root) {}
    os::MemoryMeter memory;
    os::PressureMeter pressure;
  };
  const auto meters = std::make_shared<Meters>(root);
  if (const int error = meters->memory.error(); error != 0)
    return base::system_error(error, "open what the kernel says of memory, for budget = auto",
                              "raise ulimit -n, or give the budget a size");
  if (meters->memory.read().limit_bytes == 0)
    return Error{ENOTSUP,
                 "budget = auto: /proc/meminfo and the cgroups do not say how much memory is left; "
                 "mount /proc, or give the budget a size"};
  return Meter([meters]() -> std::optional<Reading> {
    const os::MemoryMeter::Reading memory = meters->memory.read();
    if (memory.limit_bytes == 0) return std::nullopt;
    return Reading{memory.bytes, memory.limit_bytes, meters->pressure.read()};
  });
}

BudgetGovernor::BudgetGovernor(paging::Engine& engine, metrics::CounterBlock& counters,
                               const Options& options, Meter meter)
    : engine_(engine),
      counters_(counters),
      options_(options),
      meter_(std::move(meter)),
      forecast_(options.min_bytes, options.max_bytes) {
  OC_CHECK(meter_ != nullptr);
  OC_CHECK(options_.min_bytes <= options_.max_bytes);
}

BudgetGovernor::~BudgetGovernor() { end(); }

Status BudgetGovernor::start() {
  OC_CHECK(!thread_.joinable());
  OC_CHECK(is_ending_.load() == 0);
  try {
    const os::SignalBlock block;  // inherited: no signal of the program runs on our thread
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& e) {
    return base::system_error(e.code().value(), "start the thread of budget = auto",
                              "raise ulimit -u, or give the budget a size");
  }
  return {};
}

void BudgetGovernor::end() {
  is_ending_.store(1, std::memory_order_release);
  os::wake_all(&is_ending_);
  interruptions_.fetch_add(1);
  os::wake_all(&interruptions_);
  if (!thread_.joinable()) return;
  OC_CHECK(thread_.get_id() != std::this_thread::get_id());
  thread_.join();
}

void BudgetGovernor::run() {
  while (is_ending_.load(std::memory_order_acquire) == 0) {
    uint64_t pause_ns = kPeriodNs;
    try {
      pause_ns = step(os::now_ns());
    } catch (const std::bad_alloc&) {  // of a message: what was decided is done or undone
    }
    if (pause_ns == 0) return;
    const uint64_t until_ns = os::now_ns() + pause_ns;
    while (is_ending_.load(std::memory_order_acquire) == 0) {
      const uint64_t now_ns = os::now_ns();
      if (now_ns >= until_ns) break;
      os::wait(&is_ending_, 0, until_ns - now_ns);
    }
  }
}

uint64_t BudgetGovernor::step(uint64_t now_ns) {
  const os::SignalBlock block;
  const os::Locked deciding(deciding_);
  if (is_fixed_) return 0;
  const std::optional<Reading> reading = meter_();
  if (!reading) return kPeriodNs;  // the budget stays as it is
  budget::BudgetSample sample;
  sample.at_ns = now_ns;
  sample.available_bytes = reading->available_bytes;
  sample.limit_bytes = reading->limit_bytes;
  sample.used_bytes = engine_.used_bytes();
  sample.budget_bytes = engine_.budget_bytes();
  sample.least_bytes = engine_.least_budget_bytes();
  sample.pressure = reading->pressure;
  OC_CHECK(sample.budget_bytes % base::kSystemPage == 0);
  const budget::BudgetDecision decision = forecast_.next(sample);
  OC_CHECK(decision.budget_bytes != 0);
  bool is_done = true;
  if (decision.budget_bytes < sample.budget_bytes)
    is_done = shrink(sample.budget_bytes, decision.budget_bytes);
  if (decision.budget_bytes > sample.budget_bytes) is_done = grow(decision.budget_bytes);
  if (is_done) {
    retry_ns_ = kPeriodNs;
    return decision.is_urgent ? kUrgentNs : kPeriodNs;
  }
  // While a shrink is tried, fills stand still: less and less often, if nothing comes of it.
  if (engine_.budget_bytes() < sample.budget_bytes) retry_ns_ = kPeriodNs;
  const uint64_t pause_ns = retry_ns_;
  retry_ns_ = std::min(2 * retry_ns_, kRetryNsMax);
  OC_CHECK(pause_ns >= kPeriodNs);
  return pause_ns;
}

bool BudgetGovernor::shrink(uint64_t before, uint64_t bytes) {
  OC_CHECK(deciding_.is_held());
  OC_CHECK(bytes < before);
  const uint64_t start_ns = os::now_ns();
  const uint64_t piece =
      base::round_up(std::max(before / kPieceShare, kPieceLeast), base::kSystemPage);
  uint64_t reached = before;
  bool is_possible = true;
  while (reached > bytes && is_possible && interruptions_.load() == 0) {
    const uint64_t piece_ns = os::now_ns();
    const uint64_t next = std::max(bytes, reached - std::min(reached, piece));
    is_possible = engine_.approach_budget(next, options_.shrink_wait_ns_max).ok();
    reached = is_possible ? next : std::min(reached, engine_.budget_bytes());
    if (is_possible && reached > bytes) rest(os::now_ns() - piece_ns);
  }
  if (!is_possible) counters_.add(Counter::budget_shrink_failures);
  if (reached == before) return is_possible;
  counters_.add(Counter::budget_shrinks);
  const uint64_t took_ns = os::now_ns() - start_ns;
  if (took_ns > shrink_ns_max()) shrink_ns_max_.store(took_ns, std::memory_order_relaxed);
  return is_possible;
}

// Between two pieces, as long as the first one took: so fills have half of the time.
void BudgetGovernor::rest(uint64_t piece_ns) {
  OC_CHECK(deciding_.is_held());
  const uint64_t start_ns = os::now_ns();
  const uint64_t pause_ns = std::clamp(piece_ns, kRestNsLeast, kRestNsMax);
  while (interruptions_.load() == 0) {
    const uint64_t rested_ns = os::now_ns() - start_ns;
    if (rested_ns >= pause_ns) return;
    os::wait(&interruptions_, 0, pause_ns - rested_ns);
  }
}

bool BudgetGovernor::grow(uint64_t bytes) {
  OC_CHECK(deciding_.is_held());
  // A loan that ends meanwhile makes a shrink of it.
  const bool is_possible = engine_.approach_budget(bytes, options_.shrink_wait_ns_max).ok();
  if (is_possible) counters_.add(Counter::budget_growths);
  return is_possible;
}

Status BudgetGovernor::fix(uint64_t bytes) {
  const os::SignalBlock block;
  interruptions_.fetch_add(1);  // of a shrink: the program waits for no more than a piece of it
  os::wake_all(&interruptions_);
  const os::Locked deciding(deciding_);
  const uint32_t before = interruptions_.fetch_sub(1);
  OC_CHECK(before > 0);
  Status status = engine_.resize_budget(bytes);
  if (status.ok()) is_fixed_ = true;
  return status;
}

}  // namespace outcore::runtime
