// kmers: metagenomics as LMAT does it, the application of the DI-MMAP and UMap papers. Threads, of
// one process or of several, tell of which organism reads are, by looking up all k-mers of each in
// one database; the organisms are made up, so it is known what is right.
#include <cerrno>
#include <memory>
#include <mutex>
#include <span>

#include "bench/kmer_data.h"
#include "bench/kmer_export.h"
#include "bench/page_lists.h"
#include "bench/read_classifier.h"
#include "bench/workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kSampleReadsDefault = 2000, kReadsAReport = 16;
// A right database tells 0.997 of all reads right, one whose taxa are mixed up next to none. One
// that has lost some pages still tells most, as a read has a hundred k-mers: the checksum finds it.
constexpr double kRightShareMin = 0.95;

class Kmers : public Workload {
 public:
  explicit Kmers(const Options& options)
      : options_(options),
        reads_(options.touches == 0 ? kSampleReadsDefault : options.touches),
        data_(options) {}

  uint64_t data_bytes() const override { return data_.header().size_bytes; }
  uint64_t mapped_bytes() const override { return options_.processes * data_bytes(); }
  const std::string& uri() const override { return data_.file().uri(); }
  void forget() override { data_.file().forget(); }
  Status prepare() override;
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  // What became of the reads of a process.
  struct Answers {
    std::mutex mutex;
    uint64_t checksum = 0, right = 0;
    Status first_error;
  };
  uint64_t workers() const { return uint64_t{options_.processes} * options_.threads; }
  // The reads of a worker, a thread of any process: every workers()-th, from its number on.
  uint64_t reads_of(uint64_t worker) const {
    return worker < reads_ ? (reads_ - worker - 1) / workers() + 1 : 0;
  }
  void classify(uint64_t worker, Stage& stage, std::span<const std::byte> file, Answers& all) const;

  Options options_;
  uint64_t reads_;
  KmerData data_;
  bool is_exported_ = false;
};

Status Kmers::prepare() {
  const bool is_exporting = !options_.export_folder.empty() && !is_exported_;
  if (is_exporting)
    if (Status s = make_export_folder(options_.export_folder); !s) return s;
  if (Status s = data_.make(reads_); !s) return s;
  if (is_exporting)
    if (Status s = data_.export_to(options_.export_folder, reads_); !s) return s;
  is_exported_ = true;  // by the first of several runs
  if (!options_.is_top_pinned) return {};
  const uint64_t top_bytes = data_.header().entries_at;
  const uint64_t budget_bytes =
      options_.is_shared ? options_.budget_bytes : options_.budget_bytes / options_.processes;
  if (top_bytes <= budget_bytes / 2) return {};
  return Error{EINVAL, cli::format("--pin-top would take %s of the %s of a process, more than "
                                   "half: use a larger --budget",
                                   cli::format_bytes(top_bytes).c_str(),
                                   cli::format_bytes(budget_bytes).c_str())};
}

void Kmers::classify(uint64_t worker, Stage& stage, std::span<const std::byte> file,
                     Answers& all) const {
  const KmerIndex index(data_.header(), file);
  Status first_error;
  PageLists lists(index, stage.page_bytes(), options_.is_top_pinned,
                  [&](std::span<const uint64_t> pages) {
                    if (Status s = stage.prefetch(file, pages); !s && first_error) first_error = s;
                  });
  SampleAnswers answers(data_.genomes(), index);
  if (options_.has_prefetch_lists) answers.ask_ahead(&lists);
  uint64_t untold = 0;
  for (uint64_t i = worker; i < reads_; i += workers()) {
    answers.classify_read(i);
    if (++untold < kReadsAReport) continue;
    stage.progress(untold);
    untold = 0;
  }
  stage.progress(untold);
  const std::lock_guard lock(all.mutex);
  all.checksum += answers.checksum();
  all.right += answers.right();
  if (all.first_error) all.first_error = first_error;
}

Status Kmers::run(Stage& stage) {
  const KmerHeader& header = data_.header();
  const uint64_t first_worker = uint64_t{stage.process()} * options_.threads;
  uint64_t reads = 0;
  for (unsigned thread = 0; thread < options_.threads; ++thread)
    reads += reads_of(first_worker + thread);
  if (Status s = stage.settle(); !s) return s;
  auto mapped = stage.map({data_.file().uri(), 0, header.size_bytes, false});
  if (!mapped) return mapped.error();
  const std::span<const std::byte> file = mapped.value();
  if (options_.is_top_pinned)
    if (Status s = stage.pin(file.first(header.entries_at)); !s) return s;
  if (Status s = stage.start(reads); !s) return s;
  Answers all;
  on_threads(options_.threads,
             [&](unsigned thread) { classify(first_worker + thread, stage, file, all); });
  stage.stop();
  if (!all.first_error) return all.first_error;
  // Counts of processes are added up: what all have in common is told by one.
  auto& extra = stage.result().extra;
  const bool is_first = stage.process() == 0;
  extra["kmers"] = is_first ? header.kmers : 0;
  extra["strains"] = uint64_t{is_first ? data_.genomes().taxonomy().strains() : 0};
  extra["answers"] = all.checksum;
  extra["right"] = all.right;
  return stage.finish(static_cast<double>(reads), "reads/s");
}

Status Kmers::check(const RunResult& result) {
  if (result.is_stopped) return {};
  const double share = result.extra.value("right", 0.0) / static_cast<double>(reads_);
  if (share < kRightShareMin)
    return Error{EILSEQ, cli::format("%.1f %% of the reads were told right, and not %.0f %%",
                                     share * 100, kRightShareMin * 100)};
  if (result.extra.value("answers", uint64_t{0}) == data_.header().answers) return {};
  return Error{EILSEQ, "the answers are not those of the database in plain memory"};
}

}  // namespace

std::unique_ptr<Workload> make_kmers(const Options& options) {
  return std::make_unique<Kmers>(options);
}

}  // namespace outcore::bench
