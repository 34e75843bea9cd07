#include "core/runtime/exit_report.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/wait.h"

namespace outcore::runtime {
namespace {

// The runtimes that have a report to make at exit. Never freed, because it may be used after the
// destruction of static objects.
struct Waiting {
  std::mutex lock;
  std::vector<std::weak_ptr<Runtime::Impl>> runtimes;
};
Waiting& waiting() {
  static Waiting* const all = new Waiting;
  return *all;
}

// REQUIRES: the mapping lock is held, so that no store ends meanwhile.
Metrics collect(Runtime::Impl& impl) {
  Metrics metrics;
  impl.engine->add_to(metrics);
  if (impl.governor != nullptr)
    metrics.gauges.budget_shrink_ns_max = impl.governor->shrink_ns_max();
  auto add = [&](const metrics::CounterBlock& block) {
    const Counters counters = block.sum();
#define OUTCORE_ADD(name, unit, help) metrics.counters.name += counters.name;
    OUTCORE_COUNTERS(OUTCORE_ADD)
#undef OUTCORE_ADD
    const LatencyHistogram latency = block.fault_latency();
    for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i)
      metrics.fault_latency.count[i] += latency.count[i];
  };
  add(impl.ended);
  for (const auto& [key, cache] : impl.caches) {
    add(cache->counters);
    metrics.gauges.degraded += cache->is_told_degraded();
  }
  for (const Region::Impl* region : impl.regions)
    metrics.regions.push_back(runtime::metrics_of(*region));
  return metrics;
}

bool is_wanted(const Runtime::Impl& impl) {
  return !impl.options.metrics_at_exit.empty() && impl.options.metrics_at_exit != "none";
}

// Within exit() or a destructor, which no exception may leave.
void keep_and_tell(Runtime::Impl& impl) noexcept {
  try {
    if (const Status s = impl.keep_learnt(false); !s)
      std::fprintf(stderr, "outcore: %s\n", s.message().c_str());
  } catch (const std::bad_alloc&) {
    std::fputs("outcore: what was learnt cannot be kept: no memory is left\n", stderr);
  }
}

// Reports the runtimes that nobody has ended: those of `outcore run`, of the default heap, or that
// are in use during exit().
void report_all() {
  std::vector<std::shared_ptr<Runtime::Impl>> all;
  if (!lock_soon(waiting().lock)) return;
  for (const auto& each : waiting().runtimes)
    if (auto impl = each.lock(); impl != nullptr) all.push_back(std::move(impl));
  waiting().runtimes.clear();
  waiting().lock.unlock();
  for (const auto& impl : all) {
    if (impl->generation != process_generation()) continue;
    if (impl->keeps_learnt_at_exit.exchange(false)) keep_and_tell(*impl);
    if (!is_wanted(*impl) || impl->is_reported.exchange(true)) continue;
    if (!lock_soon(impl->mapping)) continue;
    const Metrics metrics = collect(*impl);
    impl->mapping.unlock();
    write_metrics(impl->options.metrics_at_exit, metrics);
  }
  // They must not be destroyed here: their memory stays in use until the process is gone.
  static auto* const kept = new std::vector<std::shared_ptr<Runtime::Impl>>;
  kept->swap(all);
}

void remember(const std::shared_ptr<Runtime::Impl>& impl) {
  static const int registered = std::atexit(report_all);
  static_cast<void>(registered);
  const std::lock_guard<std::mutex> guard(waiting().lock);
  std::erase_if(waiting().runtimes, [](const auto& each) { return each.expired(); });
  waiting().runtimes.push_back(impl);
}

}  // namespace

bool lock_soon(std::mutex& lock) {
  constexpr uint64_t kNsMax = 1'000'000'000;
  const uint64_t start_ns = os::now_ns();
  while (!lock.try_lock()) {
    if (os::now_ns() - start_ns > kNsMax) return false;
    os::yield();
  }
  return true;
}

void write_metrics(const std::string& where, const Metrics& metrics) {
  if (where.empty() || where == "none") return;
  if (where == "text") {
    std::fputs(metrics.to_text().c_str(), stderr);
    return;
  }
  // In one call, so that lines of processes that append at the same time are not mixed.
  const std::string line = metrics.to_json() + "\n";
  const int file = ::open(where.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const ssize_t written = file < 0 ? -1 : ::write(file, line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size()))
    std::fprintf(stderr, "outcore: %s\n",
                 base::system_error(written < 0 ? errno : ENOSPC, "write metrics to " + where)
                     .message.c_str());
  if (file >= 0) ::close(file);
}

Metrics collect_metrics(Runtime::Impl& impl) {
  const std::lock_guard<std::mutex> guard(impl.mapping);
  return collect(impl);
}

void report_at_exit(const std::shared_ptr<Runtime::Impl>& impl) {
  if (is_wanted(*impl)) remember(impl);
}

void keep_learnt_at_exit(const std::shared_ptr<Runtime::Impl>& impl) {
  OC_CHECK(impl != nullptr);
  if (!impl->keeps_learnt_at_exit.exchange(true)) remember(impl);
}

void report_end(Runtime::Impl& impl) {
  if (is_wanted(impl) && !impl.is_reported.exchange(true))
    write_metrics(impl.options.metrics_at_exit, collect_metrics(impl));
  keep_and_tell(impl);
}

}  // namespace outcore::runtime
