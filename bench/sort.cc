// sort: a parallel quicksort of 64-bit words, in place, by threads of one process or of several
// that have mapped the same file: the experiment of NVMalloc (IPDPS 2012), which sorts by MPI.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>

#include "bench/check.h"
#include "bench/data.h"
#include "bench/partition.h"
#include "bench/shared_object.h"
#include "bench/sort_list.h"
#include "bench/workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

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
  uint64_t mapped_bytes() const override { return options_.processes * options_.size_bytes; }
  const std::string& uri() const override { return data_.uri(); }
  void forget() override { data_.forget(); }

  Status prepare() override {
    if (Status s = data_.claim(); !s) return s;
    data_.mark_changed();
    auto medium = open_medium(data_.uri(), options_.size_bytes, true);
    if (!medium) return medium.error();
    if (Status s = make_list(); !s) return s;
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

  // A list with all words as one range, which the processes of the next run inherit.
  Status make_list();
  uint64_t sort(WordRange range, uint64_t* words, Stage& stage) const;
  // One worker, until all is sorted. Returns how many words it brought in their last order; none
  // if another process failed.
  std::optional<uint64_t> work(uint64_t* words, Stage& stage) const;
  Status copy_source(Medium& to);

  Options options_;
  Data data_;
  Fingerprint expected_;
  std::optional<SharedObject<SortList>> list_;
};

Status Sort::make_list() {
  const unsigned workers = options_.threads * options_.processes;
  // Threads of one process take ranges of their own from the first on, as UMap's benchmark has it.
  const uint64_t joint_words = options_.processes == 1 ? 0 : JointPartition::words_min(workers);
  list_.emplace(WordRange{0, options_.size_bytes / sizeof(uint64_t)}, joint_words);
  return list_->get() != nullptr ? Status() : cli::failure(errno, "map the list of ranges");
}

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

uint64_t Sort::sort(WordRange range, uint64_t* words, Stage& stage) const {
  uint64_t sorted = 0;
  while (range.size() > kSmallWords) {
    const uint64_t middle = range.first + partition(range.in(words));
    BENCH_CHECK(range.first < middle && middle < range.end);
    WordRange larger{middle, range.end}, smaller{range.first, middle};
    if (larger.size() < smaller.size()) std::swap(larger, smaller);
    if (!list_->get()->push(larger)) sorted += sort(larger, words, stage);
    range = smaller;
  }
  const std::span<uint64_t> small = range.in(words);
  std::sort(small.begin(), small.end());
  stage.progress(small.size());
  return sorted + small.size();
}

std::optional<uint64_t> Sort::work(uint64_t* words, Stage& stage) const {
  SortList& list = *list_->get();
  const auto has_failed = [&stage] { return stage.has_failed(); };
  uint64_t sorted = 0;
  for (WordRange range;;) {
    switch (list.next(range, has_failed)) {
      case SortTask::kSort:
        sorted += sort(range, words, stage);
        list.done();
        break;
      case SortTask::kBegin:
        list.begin(range, pivot_of(range.in(words)));
        [[fallthrough]];
      case SortTask::kPartition:
        list.take_part(words);
        break;
      case SortTask::kNothing:
        return sorted;
      case SortTask::kFailed:
        return {};
    }
  }
}

Status Sort::run(Stage& stage) {
  if (Status s = stage.settle(); !s) return s;
  auto mapped = stage.map({data_.uri(), 0, options_.size_bytes, true});
  if (!mapped) return mapped.error();
  const uint64_t count = options_.size_bytes / sizeof(uint64_t);
  BENCH_CHECK(mapped->size() >= count * sizeof(uint64_t));
  auto* const words = reinterpret_cast<uint64_t*>(mapped->data());
  // Totals of processes are added up, and so is their work.
  if (Status s = stage.start(stage.process() == 0 ? count : 0); !s) return s;
  std::atomic<uint64_t> sorted{0};
  std::atomic<bool> is_cancelled{false};
  on_threads(options_.threads, [&](unsigned) {
    const std::optional<uint64_t> own = work(words, stage);
    if (own) sorted += *own;
    if (!own) is_cancelled = true;
  });
  stage.stop();
  if (is_cancelled) return stage.cancelled();
  return stage.finish(static_cast<double>(sorted.load()), "words/s");
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
