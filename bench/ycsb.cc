// ycsb: the six core workloads of the Yahoo! Cloud Serving Benchmark on a table of records and its
// index, as the UMap paper (section 6) has them on the database N-Store. Reads verify what they
// read; after the run all records must be whole, and have as many updates as were made.
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <vector>

#include "bench/clock.h"
#include "bench/record_file.h"
#include "bench/workload.h"
#include "bench/ycsb_client.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kOperationsAReport = 64;

class Ycsb : public Workload {
 public:
  explicit Ycsb(const Options& options)
      : options_(options),
        mix_(ycsb_mix(options.mix)),
        operations_(options.touches == 0 ? mix_.operations_default() : options.touches),
        room_(mix_.inserts_max(operations_)),
        records_(options, room_) {}

  uint64_t data_bytes() const override { return options_.size_bytes; }
  const std::string& uri() const override { return records_.file().uri(); }
  void forget() override { records_.file().forget(); }
  Status prepare() override;
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  YcsbChoice::Kind kind() const {
    if (options_.distribution == "uniform") return YcsbChoice::Kind::kUniform;
    return mix_.reads_latest ? YcsbChoice::Kind::kLatest : YcsbChoice::Kind::kScrambled;
  }

  Options options_;
  const YcsbMix& mix_;
  uint64_t operations_, room_;
  RecordFile records_;
};

// A run that writes leaves a file for nobody: the next is made anew, the same for all memories.
Status Ycsb::prepare() {
  if (Status s = records_.make(); !s) return s;
  if (mix_.is_writing()) records_.file().mark_changed();
  return {};
}

Status Ycsb::run(Stage& stage) {
  const uint64_t threads = options_.threads;
  const YcsbChoice choice(kind(), records_.loaded(), room_, options_.theta, options_.seed);
  RecordNumbers numbers(records_.loaded(), room_);
  RecordLocks locks;
  std::vector<Histogram> latencies(threads);
  std::mutex mutex;
  YcsbCounts all;

  if (Status s = stage.settle(); !s) return s;
  auto mapped = stage.map({records_.file().uri(), 0, options_.size_bytes, mix_.is_writing()});
  if (!mapped) return mapped.error();
  RecordTable table(records_.layout(), mapped.value(), locks);
  if (Status s = stage.start(operations_); !s) return s;
  on_threads(options_.threads, [&](unsigned thread) {
    YcsbClient client(mix_, choice, table, numbers, options_.seed, thread);
    uint64_t untold = 0;
    for (uint64_t i = thread; i < operations_; i += threads) {
      const uint64_t start = options_.has_latency ? now_ns() : 0;
      client.do_next();
      if (options_.has_latency) latencies[thread].record(now_ns() - start);
      if (++untold < kOperationsAReport) continue;
      stage.progress(untold);
      untold = 0;
    }
    stage.progress(untold);
    const std::lock_guard guard(mutex);
    all += client.counts();
  });
  stage.stop();
  for (const Histogram& latency : latencies) stage.result().latency.merge(latency);
  auto& extra = stage.result().extra;
  extra["records"] = records_.loaded() + all.inserts;
  extra["reads"] = all.reads;
  extra["updates"] = all.updates;
  extra["inserts"] = all.inserts;
  extra["scans"] = all.scans;
  extra["scanned"] = all.scanned;
  extra["wrong"] = all.wrong;
  return stage.finish(static_cast<double>(operations_), "operations/s");
}

Status Ycsb::check(const RunResult& result) {
  if (result.is_stopped) return {};
  const auto count = [&](const char* name) {
    return static_cast<unsigned long long>(result.extra.value(name, uint64_t{0}));
  };
  if (count("wrong") != 0)
    return Error{EILSEQ, cli::format("%llu operations had wrong answers", count("wrong"))};
  const auto found = records_.audit(count("records"));
  if (!found) return found.error();
  if (found->wrong_records != 0 || found->wrong_entries != 0)
    return Error{EILSEQ,
                 cli::format("of the table, %llu records and %llu entries of the index are wrong",
                             static_cast<unsigned long long>(found->wrong_records),
                             static_cast<unsigned long long>(found->wrong_entries))};
  if (found->entries != count("records"))
    return Error{EILSEQ,
                 cli::format("the index has %llu of %llu records",
                             static_cast<unsigned long long>(found->entries), count("records"))};
  if (found->updates != count("updates"))
    return Error{EILSEQ,
                 cli::format("the records have %llu updates where %llu were made",
                             static_cast<unsigned long long>(found->updates), count("updates"))};
  return {};
}

}  // namespace

std::unique_ptr<Workload> make_ycsb(const Options& options) {
  return std::make_unique<Ycsb>(options);
}

}  // namespace outcore::bench
