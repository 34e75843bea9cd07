// is: the integer sort of the NAS Parallel Benchmarks: keys are ranked, by buckets, in ten passes.
//
// As there, a pass changes two keys and then ranks all, and keys are put in order only at the end,
// beyond the time. All ranks are verified: by the order, which must be that of the keys as they are
// counted from the generator; in the passes before, by the ranks of five keys.
#include <cerrno>
#include <memory>
#include <optional>

#include "bench/array_layout.h"
#include "bench/check.h"
#include "bench/fresh_workload.h"
#include "bench/key_answer.h"
#include "bench/key_ranking.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

IntegerKeys keys_for(const Options& options) {
  const auto of_class = IntegerKeys::of_class(options.nas_class);
  return of_class ? *of_class : IntegerKeys::fitting(options.size_bytes);
}

class IntegerSort : public FreshWorkload {
 public:
  explicit IntegerSort(const Options& options)
      : FreshWorkload(options, "keys"),
        keys_(keys_for(options)),
        passes_(options.loops == 0 ? kIntegerSortPasses : options.loops) {
    BENCH_CHECK(keys_.size_bytes() <= options.size_bytes);
  }

  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  Result<KeyArrays> map(Stage& stage) const;
  void make_keys(uint32_t* keys) const;
  KeyAnswer::Ranks ranks_of_probes(const KeyArrays& arrays) const;

  IntegerKeys keys_;
  unsigned passes_;
  std::optional<KeyAnswer> expected_;
};

Result<KeyArrays> IntegerSort::map(Stage& stage) const {
  const auto mapped = map_all(stage);
  if (!mapped) return mapped.error();
  ArrayLayout layout;
  const auto add = [&](uint64_t count) {
    return reinterpret_cast<uint32_t*>(mapped->data() + layout.add<uint32_t>(count));
  };
  uint32_t* const keys = add(keys_.count);
  uint32_t* const buckets = add(keys_.count);
  return KeyArrays{keys, buckets, add(keys_.limit())};
}

void IntegerSort::make_keys(uint32_t* keys) const {
  on_threads(options_.threads, [&](unsigned t) {
    keys_.make(keys_.count * t / options_.threads, keys_.count * (t + 1) / options_.threads,
               [&](uint64_t index, uint32_t key) { keys[index] = key; });
  });
}

KeyAnswer::Ranks IntegerSort::ranks_of_probes(const KeyArrays& arrays) const {
  KeyAnswer::Ranks ranks{};
  for (unsigned i = 0; i < IntegerKeys::kProbes; ++i) {
    const uint32_t key = arrays.keys[keys_.probes[i]];
    // A damaged key has no rank: more than there are keys.
    ranks[i] = key >= keys_.limit() ? keys_.count + 1 : key == 0 ? 0 : arrays.ranks[key - 1];
  }
  return ranks;
}

Status IntegerSort::run(Stage& stage) {
  KeyRanking ranking(keys_, options_.threads);
  if (Status s = stage.settle(); !s) return s;
  const Result<KeyArrays> mapped = map(stage);
  if (!mapped) return mapped.error();
  const KeyArrays arrays = mapped.value();
  make_keys(arrays.keys);
  KeyAnswer found;
  if (Status s = stage.start(passes_ * keys_.count); !s) return s;
  for (unsigned pass = 1; pass <= passes_; ++pass) {
    for (const IntegerKeys::Change& change : keys_.changes(pass, passes_))
      arrays.keys[change.index] = change.key;
    ranking.rank(arrays, [&](uint64_t keys) { stage.progress(keys); });
    found.ranks.push_back(ranks_of_probes(arrays));
  }
  stage.stop();
  ranking.sort(arrays);
  auto& extra = stage.result().extra;
  extra["keys"] = keys_.count;
  extra["key_bits"] = uint64_t{keys_.bits};
  extra["ranks_hash"] = found.ranks_hash();
  extra["order_hash"] = ranking.order_hash(arrays.keys);
  extra["wrong"] = ranking.misplaced();
  return stage.finish(static_cast<double>(keys_.count) * passes_, "keys/s");
}

Status IntegerSort::check(const RunResult& result) {
  if (result.is_stopped) return {};
  if (!expected_) expected_ = KeyAnswer::compute(keys_, passes_, making_threads());
  const bool has_ranks = result.extra.value("ranks_hash", uint64_t{0}) == expected_->ranks_hash();
  const bool has_order = result.extra.value("order_hash", uint64_t{0}) == expected_->order_hash;
  const uint64_t wrong = result.extra.value("wrong", uint64_t{1});
  if (has_ranks && has_order && wrong == 0) return {};
  return Error{EILSEQ, cli::format("ranks are not those of the keys: the order is %s, the ranks of "
                                   "the passes are %s, and %llu keys were out of place",
                                   has_order ? "right" : "wrong", has_ranks ? "right" : "wrong",
                                   static_cast<unsigned long long>(wrong))};
}

}  // namespace

std::unique_ptr<Workload> make_integer_sort(const Options& options) {
  return std::make_unique<IntegerSort>(options);
}

}  // namespace outcore::bench
