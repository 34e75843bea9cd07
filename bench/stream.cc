// stream: McCalpin's STREAM: COPY, SCALE, ADD and TRIAD over three arrays of doubles.
//
// As there, bytes are those that a kernel names (two arrays or three, each once), the first pass is
// not counted, and every element is compared with what it must be. Beyond it, the elements of a
// page differ from those of others, so that a page in another's place is a wrong answer.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <memory>

#include "bench/check.h"
#include "bench/clock.h"
#include "bench/fresh_workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr double kScalar = 3;
constexpr uint64_t kStepElements = uint64_t{1} << 16;

struct Arrays {
  double *a, *b, *c;
};

// Elements [first, last) of what a kernel writes.
struct Kernel {
  const char* name;
  unsigned arrays;  // that it names
  void (*run)(const Arrays& x, uint64_t first, uint64_t last);
};

constexpr std::array<Kernel, 4> kKernels = {
    {{"copy", 2,
      [](const Arrays& x, uint64_t first, uint64_t last) {
        for (uint64_t i = first; i < last; ++i) x.c[i] = x.a[i];
      }},
     {"scale", 2,
      [](const Arrays& x, uint64_t first, uint64_t last) {
        for (uint64_t i = first; i < last; ++i) x.b[i] = kScalar * x.c[i];
      }},
     {"add", 3,
      [](const Arrays& x, uint64_t first, uint64_t last) {
        for (uint64_t i = first; i < last; ++i) x.c[i] = x.a[i] + x.b[i];
      }},
     {"triad", 3, [](const Arrays& x, uint64_t first, uint64_t last) {
        for (uint64_t i = first; i < last; ++i) x.a[i] = x.b[i] + kScalar * x.c[i];
      }}}};
constexpr unsigned kArraysOfAPass = 10;

// What a[i] begins with: 1 … 2, the same within a page.
double first_value(uint64_t i) {
  return 1 + static_cast<double>(i / (kUnitBytes / sizeof(double)) % (1 << 20)) * 0x1p-20;
}

// By what the arrays' elements have grown from a's first value after so many passes: all kernels
// are linear.
struct Growth {
  explicit Growth(unsigned passes) {
    for (unsigned pass = 0; pass < passes; ++pass) {
      b = kScalar * a;
      c = a + b;
      a = b + kScalar * c;
    }
  }
  double a = 1, b = 0, c = 0;
};

bool is_near(double value, double expected) {  // STREAM's own tolerance, of each element
  return std::abs(value - expected) <= 1e-13 * std::abs(expected);
}

class Stream : public FreshWorkload {
 public:
  explicit Stream(const Options& options)
      : FreshWorkload(options, "stream"),
        passes_(options.loops == 0 ? kStreamPasses : options.loops),
        count_(options.size_bytes / 3 / kUnitBytes * kUnitBytes / sizeof(double)) {}

  Status run(Stage& stage) override;
  Status check(const RunResult& result) override {
    if (result.is_stopped || result.extra.value("wrong", uint64_t{1}) == 0) return {};
    return Error{
        EILSEQ,
        cli::format("%llu elements of the arrays are not what they must be",
                    static_cast<unsigned long long>(result.extra.value("wrong", uint64_t{0})))};
  }

 private:
  // Calls work(first, last) for the threads' shares, in steps.
  template <typename Work>
  void on_shares(Work work) const;
  double seconds_of(const Kernel& kernel, const Arrays& arrays, Stage* stage) const;
  uint64_t count_wrong(const Arrays& arrays) const;
  void tell(RunResult& result, const std::array<double, 4>& best,
            const std::array<double, 4>& sum) const;

  unsigned passes_;
  uint64_t count_;  // of an array
};

template <typename Work>
void Stream::on_shares(Work work) const {
  BENCH_CHECK(options_.threads != 0);
  on_threads(options_.threads, [&](unsigned t) {
    const uint64_t last = count_ * (t + 1) / options_.threads;
    for (uint64_t i = count_ * t / options_.threads; i < last; i += kStepElements)
      work(i, std::min(last, i + kStepElements));
  });
}

double Stream::seconds_of(const Kernel& kernel, const Arrays& arrays, Stage* stage) const {
  const uint64_t start_ns = now_ns();
  on_shares([&](uint64_t first, uint64_t last) {
    kernel.run(arrays, first, last);
    if (stage != nullptr) stage->progress(last - first);
  });
  return seconds_since(start_ns);
}

uint64_t Stream::count_wrong(const Arrays& arrays) const {
  const Growth growth(passes_);
  std::atomic<uint64_t> wrong{0};
  on_shares([&](uint64_t first, uint64_t last) {
    uint64_t wrong_here = 0;
    for (uint64_t i = first; i < last; ++i) {
      const double value = first_value(i);
      wrong_here += !is_near(arrays.a[i], growth.a * value);
      wrong_here += !is_near(arrays.b[i], growth.b * value);
      wrong_here += !is_near(arrays.c[i], growth.c * value);
    }
    wrong += wrong_here;
  });
  return wrong.load();
}

void Stream::tell(RunResult& result, const std::array<double, 4>& best,
                  const std::array<double, 4>& sum) const {
  for (size_t k = 0; k < kKernels.size(); ++k) {
    const double mib =
        static_cast<double>(kKernels[k].arrays * count_ * sizeof(double)) / (1 << 20);
    const std::string name = kKernels[k].name;
    result.extra[name + "_mib_s"] = mib / best[k];
    result.extra[name + "_mean_mib_s"] = mib * (passes_ - 1) / sum[k];
  }
}

Status Stream::run(Stage& stage) {
  if (Status s = stage.settle(); !s) return s;
  const auto mapped = map_all(stage);
  if (!mapped) return mapped.error();
  BENCH_CHECK(mapped->size() >= 3 * count_ * sizeof(double));
  auto* const at = reinterpret_cast<double*>(mapped->data());
  const Arrays arrays{at, at + count_, at + 2 * count_};
  on_shares([&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) {
      arrays.a[i] = first_value(i);
      arrays.b[i] = 2;
      arrays.c[i] = 0;
    }
  });
  for (const Kernel& kernel : kKernels) seconds_of(kernel, arrays, nullptr);
  std::array<double, 4> best, sum{};
  best.fill(1e300);
  if (Status s = stage.start((passes_ - 1) * kKernels.size() * count_); !s) return s;
  for (unsigned pass = 1; pass < passes_; ++pass)
    for (size_t k = 0; k < kKernels.size(); ++k) {
      const double seconds = seconds_of(kKernels[k], arrays, &stage);
      best[k] = std::min(best[k], seconds);
      sum[k] += seconds;
    }
  stage.stop();
  tell(stage.result(), best, sum);
  stage.result().extra["wrong"] = count_wrong(arrays);
  const double pass_bytes = static_cast<double>(kArraysOfAPass * count_ * sizeof(double));
  return stage.finish(pass_bytes * (passes_ - 1) / (1 << 20), "MiB/s");
}

}  // namespace

std::unique_ptr<Workload> make_stream(const Options& options) {
  return std::make_unique<Stream>(options);
}

}  // namespace outcore::bench
