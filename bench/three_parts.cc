// three-parts: one file that three kinds of readers use at once, as a database does: records that
// are looked up at random; sorted runs of 64 KiB, in which a key is bisected and what follows it is
// read; and a log that is read from end to end. No page size and no advice suits all three.
//
// The first word of each 4 KiB unit tells its number, so each touch is verified.
#include <atomic>
#include <cerrno>
#include <memory>

#include "bench/check.h"
#include "bench/random.h"
#include "bench/word_data.h"
#include "bench/workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kRunUnits = 16, kLogUnitsAStep = 2, kStepsARun = 4;
constexpr uint64_t kTouchesDefault = 200'000, kStepsAReport = 64;
// On average: a record, a quarter of a run (4 units of the bisection, half of what follows), a log.
constexpr uint64_t kTouchesAStep = 1 + (4 + kRunUnits / 2) / kStepsARun + kLogUnitsAStep;

class ThreeParts : public Workload {
 public:
  explicit ThreeParts(const Options& options) : options_(options), words_(options) {}

  uint64_t data_bytes() const override { return options_.size_bytes; }
  const std::string& uri() const override { return words_.file().uri(); }
  void forget() override { words_.file().forget(); }
  Status prepare() override { return words_.make(); }
  Status run(Stage& stage) override;

  Status check(const RunResult& result) override {
    const uint64_t wrong = result.extra.value("wrong", uint64_t{0});
    if (result.is_stopped || wrong == 0) return {};
    return Error{EILSEQ, cli::format("%llu touches saw the bytes of another page",
                                     static_cast<unsigned long long>(wrong))};
  }

 private:
  // One thread's readers.
  class Reader {
   public:
    Reader(const Options& options, const uint64_t* words, unsigned thread)
        : random_(mix(options.seed) + thread),
          words_(words),
          seed_(options.seed),
          part_units_(options.size_bytes / kUnitBytes / 3),
          log_(2 * part_units_ + thread * (part_units_ / options.threads)) {}

    void step(uint64_t number) {
      touch(random_.below(part_units_));
      if (number % kStepsARun == 0) read_run();
      for (uint64_t i = 0; i < kLogUnitsAStep; ++i) {
        touch(log_);
        if (++log_ == 3 * part_units_) log_ = 2 * part_units_;
      }
    }
    uint64_t wrong() const { return wrong_; }
    uint64_t touches() const { return touches_; }

   private:
    void touch(uint64_t unit) {
      BENCH_CHECK(unit < 3 * part_units_);
      const uint64_t number = *static_cast<const volatile uint64_t*>(words_ + unit * kUnitWords);
      wrong_ += number != word_at(seed_, unit * kUnitWords);
      ++touches_;
    }
    void read_run() {
      const uint64_t first = part_units_ + random_.below(part_units_ / kRunUnits) * kRunUnits;
      const uint64_t key = random_.below(kRunUnits);
      uint64_t low = 0, high = kRunUnits;
      while (high - low > 1) {
        const uint64_t middle = (low + high) / 2;
        touch(first + middle);
        (middle <= key ? low : high) = middle;
      }
      for (uint64_t i = low; i < kRunUnits; ++i) touch(first + i);
    }

    Random random_;
    const uint64_t* words_;
    const uint64_t seed_, part_units_;
    uint64_t log_;
    uint64_t wrong_ = 0, touches_ = 0;
  };

  Options options_;
  WordData words_;
};

Status ThreeParts::run(Stage& stage) {
  if (options_.size_bytes / kUnitBytes < 3 * kRunUnits * options_.threads)
    return Error{EINVAL, "the parts have less than a run a thread: use a larger --size"};
  const uint64_t touches = options_.touches == 0 ? kTouchesDefault : options_.touches;
  const uint64_t steps = std::max<uint64_t>(touches / kTouchesAStep / options_.threads, 1);
  if (Status s = stage.settle(); !s) return s;
  auto mapped = stage.map({words_.file().uri(), 0, options_.size_bytes, false});
  if (!mapped) return mapped.error();
  const auto* const words = reinterpret_cast<const uint64_t*>(mapped.value().data());
  std::atomic<uint64_t> wrong{0}, done{0};
  if (Status s = stage.start(steps * options_.threads); !s) return s;
  on_threads(options_.threads, [&](unsigned thread) {
    Reader reader(options_, words, thread);
    for (uint64_t i = 0; i < steps; ++i) {
      reader.step(i);
      if (i % kStepsAReport == kStepsAReport - 1) stage.progress(kStepsAReport);
    }
    wrong += reader.wrong();
    done += reader.touches();
  });
  stage.stop();
  stage.result().extra["wrong"] = wrong.load();
  return stage.finish(static_cast<double>(done.load()), "touches/s");
}

}  // namespace

std::unique_ptr<Workload> make_three_parts(const Options& options) {
  return std::make_unique<ThreeParts>(options);
}

}  // namespace outcore::bench
