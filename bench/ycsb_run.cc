#include "bench/ycsb_run.h"

#include <cerrno>
#include <mutex>

#include "bench/clock.h"
#include "bench/record_table.h"
#include "bench/threads.h"
#include "bench/ycsb_client.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kOperationsAReport = 64;

YcsbChoice::Kind choice_of(const Options& options, const YcsbMix& mix) {
  if (options.distribution == "uniform") return YcsbChoice::Kind::kUniform;
  return mix.reads_latest ? YcsbChoice::Kind::kLatest : YcsbChoice::Kind::kScrambled;
}

unsigned long long count_of(const RunResult& result, const char* name) {
  return result.extra.value(name, uint64_t{0});
}

}  // namespace

YcsbPlan::YcsbPlan(const Options& options)
    : mix(ycsb_mix(options.mix)),
      operations(options.touches == 0 ? mix.operations_default() : options.touches),
      room(mix.inserts_max(operations)),
      loaded(RecordLayout(options.size_bytes).slots - room) {}

YcsbRun::YcsbRun(const Options& options)
    : options_(options),
      plan_(options),
      choice_(choice_of(options, plan_.mix), plan_.loaded, plan_.room, options.theta, options.seed),
      numbers_(plan_.loaded, plan_.room),
      latencies_(options.threads) {}

Status YcsbRun::run(Stage& stage, YcsbTable& table) {
  const uint64_t threads = options_.threads;
  std::mutex mutex;
  YcsbCounts all;

  if (Status s = stage.start(plan_.operations); !s) return s;
  on_threads(options_.threads, [&](unsigned thread) {
    YcsbClient client(plan_.mix, choice_, table, numbers_, options_.seed, thread);
    uint64_t untold = 0;
    for (uint64_t i = thread; i < plan_.operations; i += threads) {
      const uint64_t start = options_.has_latency ? now_ns() : 0;
      client.do_next();
      if (options_.has_latency) latencies_[thread].record(now_ns() - start);
      if (++untold < kOperationsAReport) continue;
      stage.progress(untold);
      untold = 0;
    }
    stage.progress(untold);
    const std::lock_guard guard(mutex);
    all += client.counts();
  });
  stage.stop();
  for (const Histogram& latency : latencies_) stage.result().latency.merge(latency);
  auto& extra = stage.result().extra;
  extra["records"] = plan_.loaded + all.inserts;
  extra["reads"] = all.reads;
  extra["updates"] = all.updates;
  extra["inserts"] = all.inserts;
  extra["scans"] = all.scans;
  extra["scanned"] = all.scanned;
  extra["wrong"] = all.wrong;
  return {};
}

uint64_t YcsbRun::records_of(const RunResult& result) { return count_of(result, "records"); }

Status YcsbRun::check_answers(const RunResult& result) {
  if (count_of(result, "wrong") == 0) return {};
  return Error{EILSEQ, cli::format("%llu operations had wrong answers", count_of(result, "wrong"))};
}

Status YcsbRun::check_table(const RunResult& result, const YcsbTable::Found& found) {
  if (found.wrong_records != 0 || found.wrong_entries != 0)
    return Error{EILSEQ,
                 cli::format("of the table, %llu records and %llu entries of the index are wrong",
                             static_cast<unsigned long long>(found.wrong_records),
                             static_cast<unsigned long long>(found.wrong_entries))};
  if (found.entries != records_of(result))
    return Error{EILSEQ, cli::format("the index has %llu of %llu records",
                                     static_cast<unsigned long long>(found.entries),
                                     count_of(result, "records"))};
  if (found.updates != count_of(result, "updates"))
    return Error{EILSEQ, cli::format("the records have %llu updates where %llu were made",
                                     static_cast<unsigned long long>(found.updates),
                                     count_of(result, "updates"))};
  return {};
}

}  // namespace outcore::bench
