// sort: a parallel quicksort of 64-bit words, in place.
#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "bench/check.h"
#include "bench/data.h"
#include "bench/workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

// Ranges that wait to be sorted: the newest first, so that work stays where memory is warm.
// Bounded: a thread that finds it full sorts the range itself.
class RangeStack {
 public:
  static constexpr size_t kRangesMax = 4096;
  using Range = std::span<uint64_t>;

  explicit RangeStack(Range all) : waiting_{all} {}

  bool push(Range range) {
    const std::lock_guard guard(mutex_);
    if (waiting_.size() >= kRangesMax) return false;
    waiting_.push_back(range);
    has_news_.notify_one();
    return true;
  }
  // Waits for a range; empty when all are sorted. The caller then calls done() once.
  Range pop() {
    std::unique_lock lock(mutex_);
    has_news_.wait(lock, [&] { return !waiting_.empty() || busy_ == 0; });
    if (waiting_.empty()) return {};
    const Range range = waiting_.back();
    waiting_.pop_back();
    ++busy_;
    return range;
  }
  void done() {
    const std::lock_guard guard(mutex_);
    BENCH_CHECK(busy_ != 0);
    if (--busy_ == 0 && waiting_.empty()) has_news_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable has_news_;
  std::vector<Range> waiting_;
  size_t busy_ = 0;
};

// The median of nine words spread over the range.
uint64_t pivot_of(std::span<const uint64_t> range) {
  uint64_t samples[9];
  for (size_t i = 0; i < 9; ++i) samples[i] = range[range.size() * (2 * i + 1) / 18];
  std::nth_element(samples, samples + 4, samples + 9);
  return samples[4];
}

// Hoare's partition: words of [0, result) are <= those of [result, size). Both parts are smaller
// than the whole.
size_t partition(std::span<uint64_t> range) {
  BENCH_CHECK(range.size() >= 2);
  const uint64_t pivot = pivot_of(range);
  size_t low = 0, high = range.size() - 1;
  while (true) {
    while (range[low] < pivot) ++low;
    while (range[high] > pivot) --high;
    if (low >= high) break;
    std::swap(range[low++], range[high--]);
  }
  return std::clamp<size_t>(low, 1, range.size() - 1);
}

class Sort : public Workload {
 public:
  // Ranges of so many words are sorted by one thread at a go (512 KiB).
  static constexpr size_t kSmallWords = 64 * 1024;

  explicit Sort(const Options& options)
      : options_(options),
        data_(options, cli::format("outcore-bench-sort-%llu-%llu.dat",
                                   static_cast<unsigned long long>(options.size_bytes),
                                   static_cast<unsigned long long>(options.seed))) {
    const uint64_t words = options.source.empty() ? options.size_bytes / sizeof(uint64_t) : 0;
    for (uint64_t i = 0; i < words; ++i) expected_.add(word_at(options.seed, i));
  }

  uint64_t data_bytes() const override { return options_.size_bytes; }
  const std::string& uri() const override { return data_.uri(); }
  void forget() override { data_.forget(); }

  Status prepare() override {
    if (Status s = data_.claim(); !s) return s;
    data_.mark_changed();
    auto medium = open_medium(data_.uri(), options_.size_bytes, true);
    if (!medium) return medium.error();
    if (!options_.source.empty()) return copy_source(**medium);
    return write_words(**medium, options_.size_bytes, options_.seed);
  }

  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  // What a permutation leaves as it is.
  struct Fingerprint {
    uint64_t sum = 0, exclusive_or = 0, hash_sum = 0;
    void add(uint64_t word) {
      sum += word;
      exclusive_or ^= word;
      hash_sum += mix(word);
    }
    bool operator==(const Fingerprint&) const = default;
  };

  void sort(std::span<uint64_t> range, RangeStack& stack, Stage& stage) const;
  Status copy_source(Medium& to);

  Options options_;
  Data data_;
  Fingerprint expected_;
};

// Each run sorts a copy of its own.
Status Sort::copy_source(Medium& to) {
  auto from = open_medium(options_.source, 0, false);
  if (!from) return from.error();
  expected_ = {};
  Status status;
  const auto see = [&](uint64_t first, std::span<const uint64_t> words) {
    for (const uint64_t word : words) expected_.add(word);
    if (status) status = to.write(first * sizeof(uint64_t), std::as_bytes(words));
  };
  const Status read = read_words(**from, options_.size_bytes, see);
  if (!read) return read;
  return status ? to.sync() : status;
}

void Sort::sort(std::span<uint64_t> range, RangeStack& stack, Stage& stage) const {
  while (range.size() > kSmallWords) {
    const size_t middle = partition(range);
    BENCH_CHECK(middle != 0 && middle < range.size());
    std::span<uint64_t> larger = range.subspan(middle), smaller = range.first(middle);
    if (larger.size() < smaller.size()) std::swap(larger, smaller);
    if (!stack.push(larger)) sort(larger, stack, stage);
    range = smaller;
  }
  std::sort(range.begin(), range.end());
  stage.progress(range.size());
}

Status Sort::run(Stage& stage) {
  if (options_.processes != 1)
    return Error{EINVAL, "sort runs in one process: leave out --processes"};
  if (Status s = stage.settle(); !s) return s;
  auto mapped = stage.map({data_.uri(), 0, options_.size_bytes, true});
  if (!mapped) return mapped.error();
  const size_t count = options_.size_bytes / sizeof(uint64_t);
  BENCH_CHECK(mapped->size() >= count * sizeof(uint64_t));
  const std::span<uint64_t> words(reinterpret_cast<uint64_t*>(mapped->data()), count);
  if (Status s = stage.start(count); !s) return s;
  RangeStack stack(words);
  on_threads(options_.threads, [&](unsigned) {
    while (true) {
      const std::span<uint64_t> range = stack.pop();
      if (range.empty()) return;
      sort(range, stack, stage);
      stack.done();
    }
  });
  stage.stop();
  return stage.finish(static_cast<double>(count), "words/s");
}

Status Sort::check(const RunResult& result) {
  if (result.is_stopped) return {};
  auto medium = open_medium(data_.uri(), options_.size_bytes, false);
  if (!medium) return medium.error();
  Fingerprint found;
  uint64_t last = 0, descents = 0;
  const auto see = [&](uint64_t, std::span<const uint64_t> words) {
    for (const uint64_t word : words) {
      descents += word < last;
      last = word;
      found.add(word);
    }
  };
  if (Status s = read_words(**medium, options_.size_bytes, see); !s) return s;
  if (descents != 0)
    return Error{EILSEQ, cli::format("the words are not sorted: %llu descents",
                                     static_cast<unsigned long long>(descents))};
  if (!(found == expected_)) return Error{EILSEQ, "the sorted words are not those of the file"};
  return {};
}

}  // namespace

std::unique_ptr<Workload> make_sort(const Options& options) {
  return std::make_unique<Sort>(options);
}

}  // namespace outcore::bench
