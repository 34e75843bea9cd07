// is: the integer sort of the NAS Parallel Benchmarks: keys are ranked, by buckets, in ten passes.
//
// As there, a pass changes two keys and then ranks all, and keys are put in order only at the end,
// beyond the time. All ranks are verified: by the order, which must be that of the keys as they are
// counted from the generator; in the passes before, by the ranks of five keys.
#include <memory>
#include <optional>

#include "bench/array_layout.h"
#include "bench/check.h"
#include "bench/fresh_workload.h"
#include "bench/key_passes.h"

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

Status IntegerSort::run(Stage& stage) {
  KeyPasses passes(keys_, passes_, options_.threads);
  if (Status s = stage.settle(); !s) return s;
  const Result<KeyArrays> mapped = map(stage);
  if (!mapped) return mapped.error();
  const KeyArrays arrays = mapped.value();
  passes.make(arrays);
  if (Status s = stage.start(passes.work()); !s) return s;
  passes.run(arrays, [&](uint64_t keys) { stage.progress(keys); });
  stage.stop();
  const KeysFound found = passes.finish(arrays);
  auto& extra = stage.result().extra;
  extra["keys"] = keys_.count;
  extra["key_bits"] = uint64_t{keys_.bits};
  extra["ranks_hash"] = found.ranks_hash;
  extra["order_hash"] = found.order_hash;
  extra["wrong"] = found.misplaced;
  return stage.finish(static_cast<double>(passes.work()), "keys/s");
}

Status IntegerSort::check(const RunResult& result) {
  if (result.is_stopped) return {};
  if (!expected_) expected_ = KeyAnswer::compute(keys_, passes_, making_threads());
  const KeysFound found{result.extra.value("ranks_hash", uint64_t{0}),
                        result.extra.value("order_hash", uint64_t{0}),
                        result.extra.value("wrong", uint64_t{1})};
  return found.check(*expected_);
}

}  // namespace

std::unique_ptr<Workload> make_integer_sort(const Options& options) {
  return std::make_unique<IntegerSort>(options);
}

}  // namespace outcore::bench
