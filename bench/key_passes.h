// KeyPasses: the work of the integer sort of the NAS Parallel Benchmarks, on arrays that lie
// wherever a program has them.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/key_answer.h"
#include "bench/key_ranking.h"
#include "outcore/result.h"

namespace outcore::bench {

// What a run has found.
struct KeysFound {
  uint64_t ranks_hash = 0, order_hash = 0;
  uint64_t misplaced = 1;

  // Errors: EILSEQ: it is not what the keys must give.
  Status check(const KeyAnswer& answer) const;
};

// One thread calls; it starts the others. What run() needs beside the arrays is allocated when it
// is made.
class KeyPasses {
 public:
  // REQUIRES: as KeyRanking and KeyAnswer::compute()
  KeyPasses(const IntegerKeys& keys, unsigned passes, unsigned threads);

  void make(const KeyArrays& arrays) const;
  // What is timed: a pass changes two keys, and then ranks all. `see` is told by the threads how
  // many keys have been ranked.
  void run(const KeyArrays& arrays, const std::function<void(uint64_t)>& see);
  // Puts the keys in order. Once, after run().
  KeysFound finish(const KeyArrays& arrays);
  // Keys that are ranked in all passes.
  uint64_t work() const { return keys_.count * passes_; }

 private:
  KeyAnswer::Ranks ranks_of_probes(const KeyArrays& arrays) const;

  IntegerKeys keys_;
  unsigned passes_, threads_;
  KeyRanking ranking_;
  KeyAnswer found_;
};

}  // namespace outcore::bench
