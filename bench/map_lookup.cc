// map-lookup: threads look keys up in one structure that they share (after the DI-MMAP paper,
// section 6). Each answer is verified.
#include <atomic>
#include <cerrno>
#include <memory>
#include <vector>

#include "bench/clock.h"
#include "bench/lookup_data.h"
#include "bench/random.h"
#include "bench/workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kProgressStep = 64;

class MapLookup : public Workload {
 public:
  explicit MapLookup(const Options& options) : options_(options), data_(options) {}

  uint64_t data_bytes() const override { return options_.size_bytes; }
  const std::string& uri() const override { return data_.file().uri(); }
  Status prepare() override { return data_.make(); }
  void forget() override { data_.file().forget(); }
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  Options options_;
  LookupData data_;
};

Status MapLookup::run(Stage& stage) {
  const uint64_t threads = options_.threads;
  const uint64_t of_all = options_.touches == 0 ? 20'000 : options_.touches;
  const uint64_t count = std::max<uint64_t>(of_all / threads, 1);
  std::vector<Histogram> latencies(threads);
  std::atomic<uint64_t> wrong{0};

  if (Status s = stage.settle(); !s) return s;
  auto mapped = stage.map({data_.file().uri(), 0, options_.size_bytes, false, data_.address()});
  if (!mapped) return mapped.error();
  const std::span<const std::byte> bytes = mapped.value();
  const uint64_t keys = LookupData::count_of(bytes);
  if (Status s = stage.start(count * threads); !s) return s;
  on_threads(options_.threads, [&](unsigned t) {
    Random random(mix(options_.seed) + t);
    uint64_t wrong_here = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t number = random.below(keys);
      const uint64_t start = options_.has_latency ? now_ns() : 0;
      wrong_here += LookupData::find(bytes, data_.key_of(number)) != number;
      if (options_.has_latency) latencies[t].record(now_ns() - start);
      if (i % kProgressStep == kProgressStep - 1) stage.progress(kProgressStep);
    }
    wrong += wrong_here;
  });
  stage.stop();
  for (const Histogram& latency : latencies) stage.result().latency.merge(latency);
  stage.result().extra["wrong"] = wrong.load();
  stage.result().extra["keys"] = keys;
  return stage.finish(static_cast<double>(count * threads), "lookups/s");
}

Status MapLookup::check(const RunResult& result) {
  if (const uint64_t wrong = result.extra.value("wrong", uint64_t{0}); wrong != 0)
    return Error{EILSEQ, cli::format("%llu lookups found something else",
                                     static_cast<unsigned long long>(wrong))};
  return {};
}

}  // namespace

std::unique_ptr<Workload> make_map_lookup(const Options& options) {
  return std::make_unique<MapLookup>(options);
}

}  // namespace outcore::bench
