// sort: a parallel quicksort of 64-bit words, in place, by threads of one process or of several
// that have mapped the same file: the experiment of NVMalloc (IPDPS 2012), which sorts by MPI. And
// its rival there, in two passes.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "bench/check.h"
#include "bench/data.h"
#include "bench/list_sort.h"
#include "bench/partition.h"
#include "bench/run_plan.h"
#include "bench/shared_object.h"
#include "bench/sort_list.h"
#include "bench/two_pass_sort.h"
#include "bench/word_file.h"
#include "bench/workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

class Sort : public Workload {
 public:
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

  // The runs of two passes lie beside the data, as long as somebody sorts.
  Status prepare_for(const std::string& memory) override {
    runs_.reset();
    if (Status s = prepare(); !s) return s;
    return memory == "two-pass" ? make_runs_file() : Status();
  }

  bool takes(const std::string& memory) const override {
    return Workload::takes(memory) || memory == "two-pass";
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
  Status make_runs_file();
  Status run_in_two_passes(Stage& stage);
  Status copy_source(Medium& to);

  Options options_;
  Data data_;
  Fingerprint expected_;
  std::optional<SharedObject<SortList>> list_;
  // Of two passes: processes that have made their runs, and where these are.
  std::optional<SharedObject<std::atomic<unsigned>>> finished_;
  std::unique_ptr<WordFile> runs_;
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

Status Sort::make_runs_file() {
  finished_.emplace(0U);
  if (finished_->get() == nullptr) return cli::failure(errno, "map a page");
  const RunPlan plan(options_);
  if (plan.is_one_pass()) return {};
  // Beside the data; beside a device's name, in /dev, is memory.
  std::filesystem::path folder = std::filesystem::path(data_.path()).parent_path();
  if (std::filesystem::is_block_file(data_.path())) folder = data_dir(options_);
  auto made = WordFile::make_unnamed(folder.empty() ? "." : folder.string(), plan.file_bytes());
  if (!made) return made.error();
  runs_ = std::move(made).value();
  return {};
}

Status Sort::run_in_two_passes(Stage& stage) {
  const RunPlan plan(options_);
  auto data = WordFile::open(data_.path());
  if (!data) return data.error();
  if (Status s = stage.settle(); !s) return s;
  const uint64_t count = plan.words() * (plan.is_one_pass() ? 1 : 2);
  if (Status s = stage.start(stage.process() == 0 ? count : 0); !s) return s;
  TwoPassSort sort(plan, **data, runs_.get(), *finished_->get(), stage);
  const Status status = sort.run();
  stage.stop();
  if (!status) return status;
  stage.result().fills = (*data)->units_read() + (runs_ == nullptr ? 0 : runs_->units_read());
  stage.result().extra["runs"] = sort.runs_made();
  return stage.finish(static_cast<double>(sort.words_done()), "words/s");
}

Status Sort::run(Stage& stage) {
  if (stage.memory_name() == "two-pass") return run_in_two_passes(stage);
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
    const std::optional<uint64_t> own = ListSort(*list_->get(), words, stage).work();
    if (own) sorted += *own;
    if (!own) is_cancelled = true;
  });
  stage.stop();
  if (is_cancelled) return stage.cancelled();
  return stage.finish(static_cast<double>(sorted.load()), "words/s");
}

Status Sort::check(const RunResult& result) {
  runs_.reset();
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
