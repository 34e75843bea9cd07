#include "bench/key_answer.h"

#include <atomic>

#include "bench/check.h"
#include "bench/random.h"
#include "bench/threads.h"

namespace outcore::bench {
namespace {

std::vector<uint32_t> count_keys(const IntegerKeys& keys, unsigned threads) {
  std::vector<uint32_t> counts(keys.limit());
  on_threads(threads, [&](unsigned thread) {
    keys.make(keys.count * thread / threads, keys.count * (thread + 1) / threads,
              [&](uint64_t, uint32_t key) {
                std::atomic_ref(counts[key]).fetch_add(1, std::memory_order_relaxed);
              });
  });
  return counts;
}

KeyAnswer::Ranks ranks_of(const std::array<uint32_t, IntegerKeys::kProbes>& probes,
                          const std::vector<uint32_t>& counts) {
  KeyAnswer::Ranks ranks{};
  uint64_t below = 0;
  for (uint64_t key = 0; key < counts.size(); ++key) {
    for (unsigned i = 0; i < IntegerKeys::kProbes; ++i)
      if (probes[i] == key) ranks[i] = below;
    below += counts[key];
  }
  return ranks;
}

}  // namespace

KeyAnswer KeyAnswer::compute(const IntegerKeys& keys, unsigned passes, unsigned threads) {
  BENCH_CHECK(passes != 0 && threads != 0);
  std::vector<uint32_t> counts = count_keys(keys, threads);
  std::array<uint32_t, IntegerKeys::kProbes> probes{};
  for (unsigned i = 0; i < IntegerKeys::kProbes; ++i) {
    BENCH_CHECK(keys.probes[i] > 2 * passes);  // which no pass changes
    probes[i] = keys.at(keys.probes[i]);
  }
  KeyAnswer answer;
  for (unsigned pass = 1; pass <= passes; ++pass) {
    for (const IntegerKeys::Change& change : keys.changes(pass, passes)) {
      --counts[keys.at(change.index)];
      ++counts[change.key];
    }
    answer.ranks.push_back(ranks_of(probes, counts));
  }
  uint64_t place = 0;
  for (uint64_t key = 0; key < counts.size(); ++key)
    for (uint32_t i = 0; i < counts[key]; ++i) answer.order_hash += mix(place++ << 32 | key);
  BENCH_CHECK(place == keys.count);
  return answer;
}

uint64_t KeyAnswer::ranks_hash() const {
  uint64_t hash = 0;
  for (const Ranks& of_pass : ranks)
    for (const uint64_t rank : of_pass) hash = mix(hash ^ rank);
  return hash;
}

}  // namespace outcore::bench
