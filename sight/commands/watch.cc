#include "sight/commands/watch.h"

#include <algorithm>
#include <cerrno>

#include "cli/assert.h"
#include "sight/commands/shared_buffer.h"

namespace outcore::cli {
namespace {

template <typename Clock>
uint64_t now_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
          .count());
}

uint64_t rise(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

// The history with this look.
const std::deque<double>& add_look(const Change& change, std::deque<double>* stalled) {
  if (change.is_known()) stalled->push_back(change.stalled());
  if (stalled->size() > kHistoryMax) stalled->pop_front();
  CLI_CHECK(stalled->size() <= kHistoryMax);
  return *stalled;
}

}  // namespace

Status Watch::look() {
  Sample sample;
  Status refused;
  std::vector<OtherLibrary> others;
  for (const pid_t pid : only_.empty() ? list_published(&others) : only_) {
    Result<std::vector<PublishedRuntime>> runtimes = look_at(pid);
    if (!runtimes) {  // it has ended; or it was never to be seen
      if (refused.ok()) refused = runtimes.error();
      continue;
    }
    sample.processes.push_back({pid, facts_of(pid), std::move(*runtimes)});
  }
  // A process's budget may be a buffer's limit, also of one that is looked at alone.
  bool is_any = only_.empty();
  for (const Sample::Process& process : sample.processes)
    for (const PublishedRuntime& runtime : process.runtimes)
      is_any = is_any || !runtime.shared_buffer.empty();
  if (is_any)
    if (Result<std::vector<BufferFacts>> buffers = list_buffers()) sample.buffers = *buffers;
  sample.since_boot_ns = now_ns<std::chrono::steady_clock>();
  sample.since_1970_ns = now_ns<std::chrono::system_clock>();
  others_ = std::move(others);
  take(sample);
  if (!only_.empty() && processes_.empty()) return refused;
  return {};
}

void Watch::take(const Sample& sample) {
  const bool is_first = since_boot_ns_ == 0;
  seconds_ = is_first ? 0 : static_cast<double>(rise(sample.since_boot_ns, since_boot_ns_)) / 1e9;
  std::map<pid_t, SeenProcess> seen;
  processes_.clear();
  for (const Sample::Process& process : sample.processes)
    processes_.push_back(view_of(process, sample.buffers, &seen[process.pid]));
  CLI_CHECK(processes_.size() == sample.processes.size());
  seen_ = std::move(seen);
  if (only_.empty()) take_buffers(sample.buffers);
  since_boot_ns_ = sample.since_boot_ns;
  since_1970_ns_ = sample.since_1970_ns;
}

void Watch::ask_dirty(pid_t pid) {
  const auto process = std::find_if(processes_.begin(), processes_.end(),
                                    [&](const ProcessView& view) { return view.pid == pid; });
  if (process == processes_.end() || process->is_dirty_asked) return;
  process->is_dirty_asked = true;
  std::vector<PublishedRuntime> runtimes;
  for (const RuntimeView& runtime : process->runtimes) runtimes.push_back(runtime.now);
  const Result<DirtyBytes> dirty = dirty_bytes(pid, places_of(runtimes));
  if (!dirty) return;
  process->dirty_bytes = dirty->all;
  size_t at = 0;
  for (RuntimeView& runtime : process->runtimes)
    for (StoreView& store : runtime.stores) {
      CLI_CHECK(at < dirty->each.size());
      store.dirty_bytes = dirty->each[at++];
    }
}

const ProcessView* Watch::find(pid_t pid) const {
  for (const ProcessView& process : processes_)
    if (process.pid == pid) return &process;
  return nullptr;
}

ProcessView Watch::view_of(const Sample::Process& process, const std::vector<BufferFacts>& buffers,
                           SeenProcess* seen) {
  ProcessView view;
  view.pid = process.pid;
  view.facts = process.facts;
  const auto found = seen_.find(process.pid);
  // Another process may have got its number.
  const SeenProcess* const before =
      found != seen_.end() && found->second.started == process.facts.started ? &found->second
                                                                             : nullptr;
  seen->started = process.facts.started;
  seen->cpu_seconds = process.facts.cpu_seconds;
  if (before != nullptr && seconds_ > 0)
    view.cpu_share = std::max(0.0, process.facts.cpu_seconds - before->cpu_seconds) / seconds_;
  CLI_CHECK(before == nullptr || seconds_ <= 0 || view.cpu_share >= 0);
  std::map<StoreKey, size_t> occurrences;
  for (const PublishedRuntime& runtime : process.runtimes) {
    const SeenRuntime* earlier = nullptr;
    if (before != nullptr)
      if (const auto same = before->runtimes.find(runtime.started_ns);
          same != before->runtimes.end())
        earlier = &same->second;
    view.runtimes.push_back(
        view_of(runtime, &occurrences, earlier, &seen->runtimes[runtime.started_ns]));
    const Metrics& metrics = runtime.metrics;
    view.change.add(view.runtimes.back().change);
    view.counters += metrics.counters;
    view.latency += metrics.fault_latency;
    for (const RegionMetrics& store : metrics.regions) view.amplification.add(store);
    const BufferFacts* const buffer = buffer_of(runtime, buffers);
    if (buffer != nullptr) view.runtimes.back().buffer = buffer->name;
    const bool is_counted =
        std::any_of(view.runtimes.begin(), view.runtimes.end() - 1, [&](const RuntimeView& other) {
          return buffer != nullptr && other.buffer == buffer->name;
        });
    if (!is_counted) {
      view.budget_bytes += buffer != nullptr ? buffer->limit_bytes : metrics.gauges.budget_bytes;
      view.used_bytes += buffer != nullptr ? buffer->used_bytes : metrics.gauges.used_bytes;
    }
    view.degraded += metrics.gauges.degraded;
  }
  if (before != nullptr) seen->stalled = before->stalled;
  view.stalled = add_look(view.change, &seen->stalled);
  CLI_CHECK(view.runtimes.size() == process.runtimes.size());
  return view;
}

RuntimeView Watch::view_of(const PublishedRuntime& runtime, std::map<StoreKey, size_t>* occurrences,
                           const SeenRuntime* before, SeenRuntime* seen) const {
  RuntimeView view;
  view.now = runtime;
  // One that started since the last look has counted all that it has since then.
  const bool is_known = seconds_ > 0 && (before != nullptr || runtime.started_ns >= since_1970_ns_);
  const Metrics& metrics = runtime.metrics;
  // Its numbers only grow. They seem to fall for a moment when a store ends while they are read,
  // and what is missing then must not be counted again: the highest is remembered.
  if (before != nullptr) seen->highest = before->highest;
  if (is_known) {
    view.change.seconds = seconds_;
    view.change.counters = metrics.counters.since(seen->highest.counters);
    view.change.latency = metrics.fault_latency.since(seen->highest.latency);
  }
  CLI_CHECK(view.change.is_known() == is_known);
  raise(metrics.counters, &seen->highest.counters);
  raise(metrics.fault_latency, &seen->highest.latency);
  for (const RegionMetrics& region : metrics.regions) {
    StoreView store;
    store.now = region;
    store.occurrence = (*occurrences)[{region.uri, 0}]++;
    const StoreKey key{region.uri, store.occurrence};
    SeenStore& seen_store = seen->stores[key];
    Seen earlier;  // zeros: it was mapped since, or again
    if (before != nullptr)
      if (const auto same = before->stores.find(key);
          same != before->stores.end() && !has_fallen(region.counters, same->second.last.counters))
        earlier = same->second.last, seen_store.stalled = same->second.stalled;
    if (is_known)
      store.change = {seconds_, region.counters.since(earlier.counters),
                      region.fault_latency.since(earlier.latency)};
    store.stalled = add_look(store.change, &seen_store.stalled);
    seen_store.last = {region.counters, region.fault_latency};
    view.stores.push_back(std::move(store));
  }
  CLI_CHECK(view.stores.size() == metrics.regions.size());
  return view;
}

void Watch::take_buffers(const std::vector<BufferFacts>& buffers) {
  std::vector<BufferView> views;
  for (const BufferFacts& buffer : buffers) {
    BufferView view{buffer};
    for (const BufferView& before : buffers_) {
      if (before.now.name != buffer.name || seconds_ <= 0) continue;
      // Members that leave take their counts with them.
      const auto a_second = [&](uint64_t now, uint64_t then) {
        return static_cast<double>(rise(now, then)) / seconds_;
      };
      view.fills_a_second = a_second(buffer.filled_pages, before.now.filled_pages);
      view.evictions_a_second = a_second(buffer.evicted_pages, before.now.evicted_pages);
    }
    CLI_CHECK(view.fills_a_second >= 0 && view.evictions_a_second >= 0);
    views.push_back(std::move(view));
  }
  buffers_ = std::move(views);
}

}  // namespace outcore::cli
