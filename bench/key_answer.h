// KeyAnswer: what ranking integer keys must give, by how many keys there are of each value.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bench/integer_keys.h"

namespace outcore::bench {

// Any thread.
struct KeyAnswer {
  using Ranks = std::array<uint64_t, IntegerKeys::kProbes>;
  std::vector<Ranks> ranks;  // of the probes: how many keys are smaller, in each pass
  uint64_t order_hash = 0;   // as KeyRanking's, of all keys in order after the last pass

  // Computed from the generator: in memory is a counter for each value, and no key.
  static KeyAnswer compute(const IntegerKeys& keys, unsigned passes, unsigned threads);
  uint64_t ranks_hash() const;
};

}  // namespace outcore::bench
