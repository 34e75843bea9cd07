#include "bench/stream_passes.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>

#include "bench/check.h"
#include "bench/clock.h"
#include "bench/threads.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr double kScalar = 3;
constexpr uint64_t kStepElements = uint64_t{1} << 16;

// Elements [first, last) of what a kernel writes.
struct Kernel {
  const char* name;
  unsigned arrays;  // that it names
  void (*run)(const StreamArrays& x, uint64_t first, uint64_t last);
};

constexpr std::array<Kernel, 4> kKernels = {
    {{"copy", 2,
      [](const StreamArrays& x, uint64_t first, uint64_t last) {
        for (uint64_t i = first; i < last; ++i) x.c[i] = x.a[i];
      }},
     {"scale", 2,
      [](const StreamArrays& x, uint64_t first, uint64_t last) {
        for (uint64_t i = first; i < last; ++i) x.b[i] = kScalar * x.c[i];
      }},
     {"add", 3,
      [](const StreamArrays& x, uint64_t first, uint64_t last) {
        for (uint64_t i = first; i < last; ++i) x.c[i] = x.a[i] + x.b[i];
      }},
     {"triad", 3, [](const StreamArrays& x, uint64_t first, uint64_t last) {
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

}  // namespace

Status StreamFound::check() const {
  if (wrong == 0) return {};
  return Error{EILSEQ, cli::format("%llu elements of the arrays are not what they must be",
                                   static_cast<unsigned long long>(wrong))};
}

StreamPasses::StreamPasses(StreamSize size, unsigned passes, unsigned threads)
    : size_(size), passes_(passes), threads_(threads) {
  BENCH_CHECK(passes >= kPassesMin && threads != 0);
  best_.fill(1e300);
}

template <typename Work>
void StreamPasses::on_shares(Work work) const {
  on_threads(threads_, [&](unsigned t) {
    const uint64_t last = size_.elements * (t + 1) / threads_;
    for (uint64_t i = size_.elements * t / threads_; i < last; i += kStepElements)
      work(i, std::min(last, i + kStepElements));
  });
}

double StreamPasses::seconds_of(size_t kernel, const StreamArrays& arrays,
                                const std::function<void(uint64_t)>& see) const {
  static_assert(kKernels.size() == kKernelCount);
  const uint64_t start_ns = now_ns();
  on_shares([&](uint64_t first, uint64_t last) {
    kKernels[kernel].run(arrays, first, last);
    see(last - first);
  });
  return seconds_since(start_ns);
}

void StreamPasses::make(const StreamArrays& arrays) const {
  on_shares([&](uint64_t first, uint64_t last) {
    for (uint64_t i = first; i < last; ++i) {
      arrays.a[i] = first_value(i);
      arrays.b[i] = 2;
      arrays.c[i] = 0;
    }
  });
  for (size_t k = 0; k < kKernelCount; ++k) seconds_of(k, arrays, [](uint64_t) {});
}

void StreamPasses::run(const StreamArrays& arrays, const std::function<void(uint64_t)>& see) {
  for (unsigned pass = 1; pass < passes_; ++pass)
    for (size_t k = 0; k < kKernelCount; ++k) {
      const double seconds = seconds_of(k, arrays, see);
      best_[k] = std::min(best_[k], seconds);
      sum_[k] += seconds;
    }
}

StreamFound StreamPasses::finish(const StreamArrays& arrays) const {
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
  return {wrong.load()};
}

double StreamPasses::work() const {
  const double pass_bytes = static_cast<double>(kArraysOfAPass * size_.elements * sizeof(double));
  return pass_bytes * (passes_ - 1) / (1 << 20);
}

std::vector<std::pair<std::string, double>> StreamPasses::rates() const {
  std::vector<std::pair<std::string, double>> rates;
  for (size_t k = 0; k < kKernelCount; ++k) {
    const double mib =
        static_cast<double>(kKernels[k].arrays * size_.elements * sizeof(double)) / (1 << 20);
    const std::string name = kKernels[k].name;
    rates.emplace_back(name + "_mib_s", mib / best_[k]);
    rates.emplace_back(name + "_mean_mib_s", mib * (passes_ - 1) / sum_[k]);
  }
  return rates;
}

}  // namespace outcore::bench
