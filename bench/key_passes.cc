#include "bench/key_passes.h"

#include <cerrno>

#include "bench/threads.h"
#include "cli/text.h"

namespace outcore::bench {

Status KeysFound::check(const KeyAnswer& answer) const {
  const bool has_ranks = ranks_hash == answer.ranks_hash();
  const bool has_order = order_hash == answer.order_hash;
  if (has_ranks && has_order && misplaced == 0) return {};
  return Error{EILSEQ, cli::format("ranks are not those of the keys: the order is %s, the ranks of "
                                   "the passes are %s, and %llu keys were out of place",
                                   has_order ? "right" : "wrong", has_ranks ? "right" : "wrong",
                                   static_cast<unsigned long long>(misplaced))};
}

KeyPasses::KeyPasses(const IntegerKeys& keys, unsigned passes, unsigned threads)
    : keys_(keys), passes_(passes), threads_(threads), ranking_(keys, threads) {
  found_.ranks.reserve(passes);
}

void KeyPasses::make(const KeyArrays& arrays) const {
  on_threads(threads_, [&](unsigned t) {
    keys_.make(keys_.count * t / threads_, keys_.count * (t + 1) / threads_,
               [&](uint64_t index, uint32_t key) { arrays.keys[index] = key; });
  });
}

KeyAnswer::Ranks KeyPasses::ranks_of_probes(const KeyArrays& arrays) const {
  KeyAnswer::Ranks ranks{};
  for (unsigned i = 0; i < IntegerKeys::kProbes; ++i) {
    const uint32_t key = arrays.keys[keys_.probes[i]];
    // A damaged key has no rank: more than there are keys.
    ranks[i] = key >= keys_.limit() ? keys_.count + 1 : key == 0 ? 0 : arrays.ranks[key - 1];
  }
  return ranks;
}

void KeyPasses::run(const KeyArrays& arrays, const std::function<void(uint64_t)>& see) {
  for (unsigned pass = 1; pass <= passes_; ++pass) {
    for (const IntegerKeys::Change& change : keys_.changes(pass, passes_))
      arrays.keys[change.index] = change.key;
    ranking_.rank(arrays, see);
    found_.ranks.push_back(ranks_of_probes(arrays));
  }
}

KeysFound KeyPasses::finish(const KeyArrays& arrays) {
  ranking_.sort(arrays);
  return {found_.ranks_hash(), ranking_.order_hash(arrays.keys), ranking_.misplaced()};
}

}  // namespace outcore::bench
