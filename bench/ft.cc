// ft: the 3-D Fourier transform of the NAS Parallel Benchmarks: a diffusion equation, solved by a
// transform forward, waves that fade in each pass, and a transform back.
//
// As there, it has two arrays of complex numbers, and one of factors; only the making of what it
// begins with is beyond the time. Of the classes the checksum of each pass must be the published
// one. Whatever the size, the last state must be what the first becomes, by a probe that needs no
// transform (fourier_probe.h).
#include <memory>
#include <optional>

#include "bench/array_layout.h"
#include "bench/check.h"
#include "bench/fourier_passes.h"
#include "bench/fresh_workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

FourierGrid grid_for(const Options& options) {
  const auto of_class = FourierGrid::of_class(options.nas_class);
  return of_class ? *of_class : FourierGrid::fitting(options.size_bytes);
}

// Not of --size, but of the grid, which may take no more than half of it.
Options with_grid_size(const Options& options) {
  Options fitting = options;
  fitting.size_bytes = grid_for(options).size_bytes();
  return fitting;
}

class FourierWork : public FreshWorkload {
 public:
  explicit FourierWork(const Options& options)
      : FreshWorkload(with_grid_size(options), "waves"),
        grid_(grid_for(options)),
        passes_(options.loops == 0 ? grid_.passes : options.loops),
        probe_(grid_, passes_) {}

  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  Result<FourierArrays> map(Stage& stage) const;

  FourierGrid grid_;
  unsigned passes_;
  FourierProbe probe_;
  std::optional<Complex> expected_;
};

Result<FourierArrays> FourierWork::map(Stage& stage) const {
  const auto mapped = map_all(stage);
  if (!mapped) return mapped.error();
  ArrayLayout layout;
  FourierArrays arrays{};
  std::byte* const base = mapped->data();
  arrays.waves = reinterpret_cast<Complex*>(base + layout.add<Complex>(grid_.points()));
  arrays.state = reinterpret_cast<Complex*>(base + layout.add<Complex>(grid_.points()));
  arrays.factors = reinterpret_cast<double*>(base + layout.add<double>(grid_.points()));
  BENCH_CHECK(layout.size_bytes() <= mapped->size());
  return arrays;
}

Status FourierWork::run(Stage& stage) {
  FourierPasses passes(grid_, passes_, options_.threads);
  if (Status s = stage.settle(); !s) return s;
  const Result<FourierArrays> mapped = map(stage);
  if (!mapped) return mapped.error();
  const FourierArrays arrays = mapped.value();
  passes.make(arrays);
  if (Status s = stage.start(passes.points_in_all()); !s) return s;
  passes.run(arrays, [&](uint64_t points) { stage.progress(points); });
  stage.stop();
  const FourierFound found = passes.finish(arrays, probe_, options_.nas_class);
  auto& extra = stage.result().extra;
  extra["checksum_re"] = found.checksum.re;
  extra["checksum_im"] = found.checksum.im;
  extra["checksums_hash"] = found.checksums_hash;
  extra["wrong"] = found.wrong;
  extra["probe_re"] = found.probe.re;
  extra["probe_im"] = found.probe.im;
  extra["grid"] = cli::format("%llux%llux%llu", static_cast<unsigned long long>(grid_.sides[0]),
                              static_cast<unsigned long long>(grid_.sides[1]),
                              static_cast<unsigned long long>(grid_.sides[2]));
  return stage.finish(passes.operations(), "flop/s");
}

Status FourierWork::check(const RunResult& result) {
  if (result.is_stopped) return {};
  if (!expected_) expected_ = probe_.expected(making_threads());
  FourierFound found{};
  found.probe = {result.extra.value("probe_re", 0.0), result.extra.value("probe_im", 0.0)};
  found.wrong = result.extra.value("wrong", uint64_t{1});
  return found.check(probe_, *expected_);
}

}  // namespace

std::unique_ptr<Workload> make_fourier(const Options& options) {
  return std::make_unique<FourierWork>(options);
}

}  // namespace outcore::bench
