// stream: McCalpin's STREAM: COPY, SCALE, ADD and TRIAD over three arrays of doubles.
#include <memory>

#include "bench/check.h"
#include "bench/fresh_workload.h"
#include "bench/stream_passes.h"

namespace outcore::bench {
namespace {

class Stream : public FreshWorkload {
 public:
  explicit Stream(const Options& options)
      : FreshWorkload(options, "stream"),
        passes_(options.loops == 0 ? kStreamPasses : options.loops),
        size_(StreamSize::fitting(options.size_bytes)) {}

  Status run(Stage& stage) override;
  Status check(const RunResult& result) override {
    if (result.is_stopped) return {};
    return StreamFound{result.extra.value("wrong", uint64_t{1})}.check();
  }

 private:
  unsigned passes_;
  StreamSize size_;
};

Status Stream::run(Stage& stage) {
  StreamPasses passes(size_, passes_, options_.threads);
  if (Status s = stage.settle(); !s) return s;
  const auto mapped = map_all(stage);
  if (!mapped) return mapped.error();
  BENCH_CHECK(mapped->size() >= size_.size_bytes());
  auto* const at = reinterpret_cast<double*>(mapped->data());
  const StreamArrays arrays{at, at + size_.elements, at + 2 * size_.elements};
  passes.make(arrays);
  if (Status s = stage.start(passes.elements_in_all()); !s) return s;
  passes.run(arrays, [&](uint64_t elements) { stage.progress(elements); });
  stage.stop();
  auto& extra = stage.result().extra;
  for (const auto& [name, rate] : passes.rates()) extra[name] = rate;
  extra["wrong"] = passes.finish(arrays).wrong;
  return stage.finish(passes.work(), "MiB/s");
}

}  // namespace

std::unique_ptr<Workload> make_stream(const Options& options) {
  return std::make_unique<Stream>(options);
}

}  // namespace outcore::bench
