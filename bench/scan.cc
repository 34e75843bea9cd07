// scan: sums the words of all units, or of every n-th, forwards or backwards, in one or more
// passes.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>

#include "bench/check.h"
#include "bench/direct.h"
#include "bench/word_workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

uint64_t sum_of(const uint64_t* words, uint64_t count) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}

class Scan : public WordWorkload {
 public:
  explicit Scan(const Options& options)
      : WordWorkload(options),
        units_((options.size_bytes / kUnitBytes + options.stride - 1) / options.stride) {}

  Status run(Stage& stage) override;

  Status check(const RunResult& result) override {
    if (result.is_stopped || result.extra.value("sum", uint64_t{0}) == expected_) return {};
    return Error{EILSEQ, "the sum of the words is not that of the file"};
  }

 private:
  void on_made() override {
    expected_ = 0;
    for (uint64_t i = 0; i < units_; ++i)
      for (uint64_t w = 0; w < kUnitWords; ++w)
        expected_ += word_at(options_.seed, unit_at(i) * kUnitWords + w);
    expected_ *= options_.passes;
  }
  // The i-th unit of a forward pass.
  uint64_t unit_at(uint64_t i) const { return i * options_.stride; }
  uint64_t scan_mapped(const std::byte* bytes, uint64_t first, uint64_t last, Stage& stage) const;
  Result<uint64_t> scan_direct(uint64_t first, uint64_t last, Stage& stage) const;

  uint64_t units_;  // that a pass touches
  uint64_t expected_ = 0;
};

uint64_t Scan::scan_mapped(const std::byte* bytes, uint64_t first, uint64_t last,
                           Stage& stage) const {
  BENCH_CHECK(first <= last && last <= units_);
  static constexpr uint64_t kProgressStep = 256;
  uint64_t sum = 0;
  for (uint64_t n = 0; n < last - first; ++n) {
    const uint64_t i = options_.is_backward ? last - 1 - n : first + n;
    sum += sum_of(reinterpret_cast<const uint64_t*>(bytes + unit_at(i) * kUnitBytes), kUnitWords);
    if (n % kProgressStep == 0) stage.progress(kProgressStep);
  }
  return sum;
}

// Sequential: large transfers. With a stride: units, or pages where these are larger.
Result<uint64_t> Scan::scan_direct(uint64_t first, uint64_t last, Stage& stage) const {
  BENCH_CHECK(first <= last && last <= units_);
  static constexpr uint64_t kSequentialBytes = uint64_t{1} << 20;
  const uint64_t size =
      options_.stride == 1 ? std::max(options_.page_bytes, kSequentialBytes) : kUnitBytes;
  const uint64_t units_each = size / kUnitBytes;
  auto file = DirectFile::open(words_.file().path(), false, options_.depth, size);
  if (!file) return file.error();
  uint64_t sum = 0;
  const uint64_t whole = (last - first) / units_each;
  const auto see = [&](uint64_t, std::span<const std::byte> bytes) {
    sum += sum_of(reinterpret_cast<const uint64_t*>(bytes.data()), bytes.size() / 8);
    stage.progress(bytes.size() / kUnitBytes);
  };
  const auto offset_of = [&](uint64_t n) {
    const uint64_t i = first + (options_.is_backward ? whole - 1 - n : n) * units_each;
    return unit_at(i) * kUnitBytes;
  };
  int code = (*file)->read_all(whole, size, offset_of, see);
  // What is left over at the end, unit by unit.
  const auto rest_of = [&](uint64_t n) { return (first + whole * units_each + n) * kUnitBytes; };
  if (code == 0)
    code = (*file)->read_all((last - first) - whole * units_each, kUnitBytes, rest_of, see);
  if (code != 0) return cli::failure(code, "read " + words_.file().path());
  return sum;
}

Status Scan::run(Stage& stage) {
  const bool is_direct = stage.memory_name() == "direct";
  if (options_.processes != 1)
    return Error{EINVAL, "scan runs in one process: leave out --processes"};
  std::atomic<uint64_t> sum{0};
  std::mutex mutex;
  Status first_error;
  if (Status s = stage.settle(); !s) return s;
  std::span<std::byte> bytes;
  if (!is_direct) {
    auto mapped = stage.map({words_.file().uri(), 0, options_.size_bytes, false});
    if (!mapped) return mapped.error();
    bytes = mapped.value();
    BENCH_CHECK(bytes.size() >= options_.size_bytes);
  }
  if (Status s = stage.start(units_ * options_.passes); !s) return s;
  on_threads(options_.threads, [&](unsigned t) {
    const uint64_t first = units_ * t / options_.threads,
                   last = units_ * (t + 1) / options_.threads;
    for (unsigned pass = 0; pass < options_.passes; ++pass) {
      if (!is_direct) {
        sum += scan_mapped(bytes.data(), first, last, stage);
        continue;
      }
      auto part = scan_direct(first, last, stage);
      if (part) sum += part.value();
      if (part) continue;
      const std::lock_guard guard(mutex);
      first_error = part.status();
    }
  });
  stage.stop();
  if (!first_error) return first_error;
  if (is_direct) stage.result().fills = units_ * options_.passes;
  stage.result().extra["sum"] = sum.load();
  const double touched = static_cast<double>(units_ * options_.passes) * kUnitBytes;
  return stage.finish(touched / (1 << 20), "MiB/s");
}

}  // namespace

std::unique_ptr<Workload> make_scan(const Options& options) {
  return std::make_unique<Scan>(options);
}

}  // namespace outcore::bench
