// random-io: one touch a page access, at random (after LRIOT, in the DI-MMAP paper, section 5).
//
// The first word of each 4 KiB unit tells its number, so each touch is verified; the second is a
// cell that a write touch increments, and afterwards the file's cells must have grown by as much as
// was written.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>

#include "bench/check.h"
#include "bench/clock.h"
#include "bench/direct.h"
#include "bench/word_workload.h"
#include "bench/zipf.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kTouchesPerStep = 256;

// Which units are touched, and how. One object a thread; the same seed, the same touches.
class Touches {
 public:
  Touches(const Options& options, uint64_t units, uint64_t first, uint64_t thread,
          uint64_t permutation_seed, const Zipf* zipf)
      : random_(mix(options.seed) + thread),
        units_(units),
        next_(first),
        write_percent_(options.write_percent),
        zipf_(zipf),
        permutation_(units, permutation_seed),
        is_once_(options.distribution == "once") {}

  uint64_t next_unit() {
    if (is_once_) return permutation_(next_++);
    // The hot ranks lie scattered over the data.
    if (zipf_ != nullptr) return permutation_(zipf_->next(random_));
    return random_.below(units_);
  }
  bool next_is_write() {
    return write_percent_ != 0 && (write_percent_ >= 100 || random_.below(100) < write_percent_);
  }

 private:
  Random random_;
  uint64_t units_, next_;
  unsigned write_percent_;
  const Zipf* zipf_;
  Permutation permutation_;
  bool is_once_;
};

class RandomIo : public WordWorkload {
 public:
  explicit RandomIo(const Options& options) : WordWorkload(options) {}

  uint64_t mapped_bytes() const override {
    return (options_.is_overlapping ? options_.processes : 1) * options_.size_bytes;
  }
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  void on_made() override {
    if (options_.write_percent != 0) words_.file().mark_changed();
    increments_ = 0;
  }
  uint64_t touches_of_all() const {
    uint64_t touches = options_.touches == 0 ? 200'000 : options_.touches;
    if (options_.distribution == "once")
      touches = std::min(touches, options_.size_bytes / kUnitBytes);
    return std::max<uint64_t>(touches, uint64_t{options_.threads} * options_.processes);
  }
  // One thread's part, in a mapping. Returns the number of wrong units.
  uint64_t touch(std::span<std::byte> bytes, uint64_t first_unit, uint64_t count, Touches touches,
                 Stage& stage, Histogram& latency, std::atomic<uint64_t>& writes) const;
  Result<uint64_t> touch_direct(uint64_t first_unit, uint64_t count, Touches touches, Stage& stage,
                                Histogram& latency, std::atomic<uint64_t>& writes);

  uint64_t increments_ = 0;  // of all cells since the file was made
  std::mutex stripes_[256];  // direct: a unit is read, changed and written by one thread at a time
};

uint64_t RandomIo::touch(std::span<std::byte> bytes, uint64_t first_unit, uint64_t count,
                         Touches touches, Stage& stage, Histogram& latency,
                         std::atomic<uint64_t>& writes) const {
  auto* const words = reinterpret_cast<uint64_t*>(bytes.data());
  uint64_t wrong = 0, written = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t unit = touches.next_unit();
    const bool is_write = touches.next_is_write();
    uint64_t* const at = words + unit * kUnitWords;
    const uint64_t start = options_.has_latency ? now_ns() : 0;
    if (is_write) std::atomic_ref(at[1]).fetch_add(1, std::memory_order_relaxed);
    const uint64_t number = std::atomic_ref(at[0]).load(std::memory_order_relaxed);
    if (options_.has_latency) latency.record(now_ns() - start);
    wrong += number != word_at(options_.seed, (first_unit + unit) * kUnitWords);
    written += is_write;
    if (i % kTouchesPerStep == kTouchesPerStep - 1) stage.progress(kTouchesPerStep);
  }
  writes += written;
  return wrong;
}

Result<uint64_t> RandomIo::touch_direct(uint64_t first_unit, uint64_t count, Touches touches,
                                        Stage& stage, Histogram& latency,
                                        std::atomic<uint64_t>& writes) {
  const uint64_t page = std::min(options_.page_bytes, options_.size_bytes);
  const bool is_writable = options_.write_percent != 0;
  auto file = DirectFile::open(words_.file().path(), is_writable, 1, page);
  if (!file) return file.error();
  uint64_t wrong = 0, written = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t unit = first_unit + touches.next_unit();
    const bool is_write = touches.next_is_write();
    const uint64_t offset = unit * kUnitBytes / page * page;
    BENCH_CHECK(offset < options_.size_bytes);
    const uint64_t size = std::min(page, options_.size_bytes - offset);
    const uint64_t start = now_ns();
    std::unique_lock<std::mutex> lock(stripes_[offset / page % std::size(stripes_)],
                                      std::defer_lock);
    if (is_writable) lock.lock();
    if (int code = (*file)->read(offset, size); code != 0)
      return cli::failure(code, "read " + words_.file().path());
    auto* const at =
        reinterpret_cast<uint64_t*>((*file)->bytes().data() + (unit * kUnitBytes - offset));
    wrong += at[0] != word_at(options_.seed, unit * kUnitWords);
    at[1] += is_write;
    if (is_write)
      if (int code = (*file)->write(offset, size); code != 0)
        return cli::failure(code, "write " + words_.file().path());
    if (options_.has_latency) latency.record(now_ns() - start);
    written += is_write;
    if (i % kTouchesPerStep == kTouchesPerStep - 1) stage.progress(kTouchesPerStep);
  }
  writes += written;
  return wrong;
}

Status RandomIo::run(Stage& stage) {
  const bool is_direct = stage.memory_name() == "direct";
  const uint64_t threads = options_.threads;
  // Each process has a slice of its own, or all of them the whole, where what one writes the others
  // see: two runtimes on one writable file would not.
  const uint64_t slices = options_.is_overlapping ? 1 : options_.processes;
  const uint64_t align = std::max(options_.page_bytes, kUnitBytes) / kUnitBytes;
  const uint64_t slice = options_.size_bytes / kUnitBytes / slices / align * align;
  if (slice == 0)
    return Error{EINVAL, "the data has less than a page a process: use a larger --size"};
  const uint64_t first_unit = options_.is_overlapping ? 0 : stage.process() * slice;
  // Units that each process touches once are in an order of its own; what is hot is hot for all.
  const bool is_own_order = options_.is_overlapping && options_.distribution == "once";
  const uint64_t permutation_seed = options_.seed + (is_own_order ? stage.process() : 0);
  const uint64_t count = touches_of_all() / options_.processes / threads;
  std::optional<Zipf> zipf;
  if (options_.distribution == "zipf") zipf.emplace(slice, options_.theta);
  std::vector<Histogram> latencies(threads);
  std::atomic<uint64_t> wrong{0}, writes{0};
  std::mutex mutex;
  Status first_error;

  if (Status s = stage.settle(); !s) return s;
  std::span<std::byte> bytes;
  if (!is_direct) {
    auto mapped = stage.map({words_.file().uri(), first_unit * kUnitBytes, slice * kUnitBytes,
                             options_.write_percent != 0});
    if (!mapped) return mapped.error();
    bytes = mapped.value();
    BENCH_CHECK(bytes.size() >= slice * kUnitBytes);
  }
  if (Status s = stage.start(count * threads); !s) return s;
  on_threads(options_.threads, [&](unsigned t) {
    Touches touches(options_, slice, t * count, stage.process() * threads + t, permutation_seed,
                    zipf ? &*zipf : nullptr);
    if (!is_direct) {
      wrong += touch(bytes, first_unit, count, touches, stage, latencies[t], writes);
      return;
    }
    auto found = touch_direct(first_unit, count, touches, stage, latencies[t], writes);
    if (found) wrong += found.value();
    if (found) return;
    const std::lock_guard guard(mutex);
    first_error = found.status();
  });
  stage.stop();
  if (!first_error) return first_error;
  for (const Histogram& latency : latencies) stage.result().latency.merge(latency);
  if (is_direct) stage.result().fills = count * threads;
  stage.result().extra["writes"] = writes.load();
  stage.result().extra["wrong"] = wrong.load();
  return stage.finish(static_cast<double>(count * threads), "touches/s");
}

Status RandomIo::check(const RunResult& result) {
  if (result.is_stopped) {
    is_ready_ = options_.write_percent == 0;  // what it wrote is not known: make it anew
    return {};
  }
  if (const uint64_t wrong = result.extra.value("wrong", uint64_t{0}); wrong != 0)
    return Error{EILSEQ, cli::format("%llu touches saw the bytes of another page",
                                     static_cast<unsigned long long>(wrong))};
  if (options_.write_percent == 0) return {};
  auto medium = open_medium(words_.file().uri(), options_.size_bytes, false);
  if (!medium) return medium.error();
  uint64_t grown = 0, wrong = 0;
  const auto see = [&](uint64_t first, std::span<const uint64_t> words) {
    for (uint64_t i = 0; i < words.size(); ++i) {
      const uint64_t expected = word_at(options_.seed, first + i);
      if ((first + i) % kUnitWords == 1)
        grown += words[i] - expected;
      else
        wrong += words[i] != expected;
    }
  };
  if (Status s = read_words(**medium, options_.size_bytes, see); !s) return s;
  increments_ += result.extra.value("writes", uint64_t{0});
  if (wrong != 0 || grown != increments_) {
    is_ready_ = false;
    return Error{
        EILSEQ,
        cli::format("the file has %llu wrong words, and cells that grew by %llu where "
                    "%llu increments were made",
                    static_cast<unsigned long long>(wrong), static_cast<unsigned long long>(grown),
                    static_cast<unsigned long long>(increments_))};
  }
  return {};
}

}  // namespace

std::unique_ptr<Workload> make_random_io(const Options& options) {
  return std::make_unique<RandomIo>(options);
}

}  // namespace outcore::bench
