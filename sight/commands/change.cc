#include "sight/commands/change.h"

#include <algorithm>

#include "cli/assert.h"

namespace outcore::cli {
namespace {

// Calls f(a's counter, b's counter) for each.
template <typename A, typename B, typename F>
void for_each_pair(A& a, B& b, const F& f) {
#define OUTCORE_CALL(name, unit, help) f(a.name, b.name);
  OUTCORE_COUNTERS(OUTCORE_CALL)
#undef OUTCORE_CALL
}

}  // namespace

double Change::refault_share() const {
  const uint64_t all = filled();
  return all == 0
             ? 0
             : std::min(1.0, static_cast<double>(counters.refaults) / static_cast<double>(all));
}

void Change::add(const Change& other) {
  seconds = std::max(seconds, other.seconds);
  counters += other.counters;
  latency += other.latency;
  CLI_CHECK(seconds >= 0);
}

void raise(const Counters& now, Counters* highest) {
  CLI_CHECK(highest != nullptr);
  for_each_pair(*highest, now, [](uint64_t& h, uint64_t n) { h = std::max(h, n); });
}

void raise(const LatencyHistogram& now, LatencyHistogram* highest) {
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i)
    highest->count[i] = std::max(highest->count[i], now.count[i]);
}

bool has_fallen(const Counters& now, const Counters& before) {
  bool is_less = false;
  for_each_pair(now, before, [&](uint64_t n, uint64_t b) { is_less = is_less || n < b; });
  return is_less;
}

uint64_t distinct_bytes_of(const RegionMetrics& store) {
  const uint64_t came = store.counters.fills + store.counters.prefetch_fills;
  const uint64_t bytes = (came - std::min(came, store.counters.refaults)) * store.page_bytes;
  if (store.size_bytes == 0 || store.page_bytes == 0) return bytes;  // nobody knows its size
  return std::min(bytes,
                  (store.size_bytes + store.page_bytes - 1) / store.page_bytes * store.page_bytes);
}

void Amplification::add(const RegionMetrics& store) {
  read_bytes += store.counters.read_bytes;
  distinct_bytes += distinct_bytes_of(store);
}

std::optional<double> Amplification::value() const {
  if (distinct_bytes == 0) return std::nullopt;
  const double ratio = static_cast<double>(read_bytes) / static_cast<double>(distinct_bytes);
  CLI_CHECK(ratio >= 0);
  return ratio;
}

}  // namespace outcore::cli
