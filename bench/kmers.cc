// kmers: metagenomics as LMAT does it, the application of the DI-MMAP and UMap papers. Threads, of
// one process or of several, tell of which organism reads are, by looking up all k-mers of each in
// one database, or look up k-mers by themselves; it is known of which genomes all of them are.
#include <cerrno>
#include <memory>
#include <mutex>
#include <span>

#include "bench/kmer_data.h"
#include "bench/kmer_export.h"
#include "bench/kmer_heap.h"
#include "bench/lookup_answers.h"
#include "bench/page_lists.h"
#include "bench/read_classifier.h"
#include "bench/sample_check.h"
#include "bench/workload.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kSampleLookupsDefault = 200'000;
constexpr uint64_t kReadsAReport = 16, kLookupsAReport = 256;

KmerSample sample_of(const Options& o) {
  if (o.touches != 0) return {o.touches, o.is_of_lookups};
  return {o.is_of_lookups ? kSampleLookupsDefault : kSampleReadsDefault, o.is_of_lookups};
}

class Kmers : public Workload {
 public:
  explicit Kmers(const Options& options)
      : options_(options), sample_(sample_of(options)), data_(options) {}

  uint64_t data_bytes() const override { return data_.header().size_bytes; }
  uint64_t mapped_bytes() const override { return options_.processes * data_bytes(); }
  const std::string& uri() const override { return data_.file().uri(); }
  void forget() override { data_.file().forget(); }
  Status prepare() override;
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  // What became of the sample's part of a process.
  struct Answers {
    std::mutex mutex;
    uint64_t checksum = 0;
    uint64_t right = 0, above = 0;  // of reads
    uint64_t found = 0, wrong = 0;  // of look-ups
    Status first_error;
  };
  uint64_t workers() const { return uint64_t{options_.processes} * options_.threads; }
  // The part of a worker, a thread of any process: every workers()-th, from its number on.
  uint64_t part_of(uint64_t worker) const {
    return worker < sample_.count ? (sample_.count - worker - 1) / workers() + 1 : 0;
  }
  // Calls answer(number) for each of them; after so many the stage is told.
  template <typename Answer>
  void answer_part(uint64_t worker, Stage& stage, uint64_t a_report, Answer&& answer) const;
  void classify(uint64_t worker, Stage& stage, std::span<const std::byte> file, Answers& all) const;
  void look_up(uint64_t worker, Stage& stage, std::span<const std::byte> file, Answers& all) const;

  Options options_;
  KmerSample sample_;
  KmerData data_;
  bool is_exported_ = false;
};

Status Kmers::prepare() {
  const bool is_exporting = !options_.export_folder.empty() && !is_exported_;
  if (is_exporting)
    if (Status s = make_export_folder(options_.export_folder); !s) return s;
  if (Status s = data_.make(sample_); !s) return s;
  if (is_exporting)
    if (Status s = data_.export_to(options_.export_folder, sample_.count); !s) return s;
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

template <typename Answer>
void Kmers::answer_part(uint64_t worker, Stage& stage, uint64_t a_report, Answer&& answer) const {
  uint64_t untold = 0;
  for (uint64_t i = worker; i < sample_.count; i += workers()) {
    answer(i);
    if (++untold < a_report) continue;
    stage.progress(untold);
    untold = 0;
  }
  stage.progress(untold);
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
  answer_part(worker, stage, kReadsAReport, [&](uint64_t i) { answers.classify_read(i); });
  const std::lock_guard lock(all.mutex);
  all.checksum += answers.checksum();
  all.right += answers.right();
  all.above += answers.above();
  if (all.first_error) all.first_error = first_error;
}

void Kmers::look_up(uint64_t worker, Stage& stage, std::span<const std::byte> file,
                    Answers& all) const {
  const KmerIndex index(data_.header(), file);
  LookupAnswers answers(data_.genomes(), index);
  answer_part(worker, stage, kLookupsAReport, [&](uint64_t i) { answers.look_up(i); });
  const std::lock_guard lock(all.mutex);
  all.checksum += answers.checksum();
  all.found += answers.found();
  all.wrong += answers.wrong();
}

Status Kmers::run(Stage& stage) {
  const KmerHeader& header = data_.header();
  const uint64_t first_worker = uint64_t{stage.process()} * options_.threads;
  uint64_t count = 0;
  for (unsigned thread = 0; thread < options_.threads; ++thread)
    count += part_of(first_worker + thread);
  if (Status s = stage.settle(); !s) return s;
  auto mapped = stage.map({data_.file().uri(), 0, header.size_bytes, false});
  if (!mapped) return mapped.error();
  const std::span<const std::byte> file = mapped.value();
  if (options_.is_top_pinned)
    if (Status s = stage.pin(file.first(header.entries_at)); !s) return s;
  if (Status s = stage.start(count); !s) return s;
  Answers all;
  on_threads(options_.threads, [&](unsigned thread) {
    if (sample_.is_of_lookups)
      look_up(first_worker + thread, stage, file, all);
    else
      classify(first_worker + thread, stage, file, all);
  });
  stage.stop();
  if (!all.first_error) return all.first_error;
  // Counts of processes are added up: what all have in common is told by one.
  auto& extra = stage.result().extra;
  const bool is_first = stage.process() == 0;
  extra["kmers"] = is_first ? header.kmers : 0;
  extra["strains"] = uint64_t{is_first ? data_.genomes().taxonomy().strains() : 0};
  extra["answers"] = all.checksum;
  if (sample_.is_of_lookups) {
    extra["found"] = all.found;
    extra["wrong"] = all.wrong;
  } else {
    extra["right"] = all.right;
    extra["above"] = all.above;
  }
  return stage.finish(static_cast<double>(count), sample_.is_of_lookups ? "lookups/s" : "reads/s");
}

Status Kmers::check(const RunResult& result) {
  if (result.is_stopped) return {};
  if (!sample_.is_of_lookups)
    return check_sample(result, sample_.count, data_.genomes().tellable_share(),
                        data_.right_answers(sample_));
  const auto wrong = result.extra.value("wrong", uint64_t{0});
  if (wrong != 0)
    return Error{EILSEQ, cli::format("%llu of %llu k-mers have a taxon that they cannot have",
                                     static_cast<unsigned long long>(wrong),
                                     static_cast<unsigned long long>(sample_.count))};
  return check_answers(result, data_.right_answers(sample_));
}

}  // namespace

std::unique_ptr<Workload> make_kmers(const Options& options) {
  if (options.table == "heap") return make_kmers_in_heap(options);
  return std::make_unique<Kmers>(options);
}

}  // namespace outcore::bench
