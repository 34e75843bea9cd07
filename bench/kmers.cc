// kmers: metagenomics as LMAT does it, the application of the DI-MMAP and UMap papers. Threads tell
// of which organism reads are, by looking up all k-mers of each in one database; the organisms are
// made up, so it is known what is right.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>

#include "bench/check.h"
#include "bench/kmer_data.h"
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
  const std::string& uri() const override { return data_.file().uri(); }
  void forget() override { data_.file().forget(); }
  Status prepare() override { return data_.make(reads_); }
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  Options options_;
  uint64_t reads_;
  KmerData data_;
};

Status Kmers::run(Stage& stage) {
  const KmerHeader& header = data_.header();
  std::atomic<uint64_t> checksum{0}, right{0};
  if (Status s = stage.settle(); !s) return s;
  auto mapped = stage.map({data_.file().uri(), 0, header.size_bytes, false});
  if (!mapped) return mapped.error();
  const KmerIndex index(header, mapped.value());
  if (Status s = stage.start(reads_); !s) return s;
  on_threads(options_.threads, [&](unsigned thread) {
    SampleAnswers answers(data_.genomes(), index);
    uint64_t untold = 0;
    for (uint64_t i = thread; i < reads_; i += options_.threads) {
      answers.classify_read(i);
      if (++untold < kReadsAReport) continue;
      stage.progress(untold);
      untold = 0;
    }
    stage.progress(untold);
    checksum += answers.checksum();
    right += answers.right();
  });
  stage.stop();
  auto& extra = stage.result().extra;
  extra["kmers"] = header.kmers;
  extra["strains"] = data_.genomes().taxonomy().strains();
  extra["answers"] = checksum.load();
  extra["right_share"] = static_cast<double>(right.load()) / static_cast<double>(reads_);
  return stage.finish(static_cast<double>(reads_), "reads/s");
}

Status Kmers::check(const RunResult& result) {
  if (result.is_stopped) return {};
  const double share = result.extra.value("right_share", 0.0);
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
