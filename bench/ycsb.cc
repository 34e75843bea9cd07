// ycsb: the six core workloads of the Yahoo! Cloud Serving Benchmark on a table of records and its
// index, as the UMap paper (section 6) has them on the database N-Store; or on a hash table in a
// heap (ycsb_heap.h). Reads verify what they read; after the run all records must be whole, and
// have as many updates as were made.
#include <memory>

#include "bench/record_file.h"
#include "bench/workload.h"
#include "bench/ycsb_heap.h"
#include "bench/ycsb_run.h"

namespace outcore::bench {
namespace {

class Ycsb : public Workload {
 public:
  explicit Ycsb(const Options& options)
      : options_(options), plan_(options), records_(options, plan_.room) {}

  uint64_t data_bytes() const override { return options_.size_bytes; }
  const std::string& uri() const override { return records_.file().uri(); }
  void forget() override { records_.file().forget(); }
  Status prepare() override;
  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  Options options_;
  YcsbPlan plan_;
  RecordFile records_;
};

// A run that writes leaves a file for nobody: the next is made anew, the same for all memories.
Status Ycsb::prepare() {
  if (Status s = records_.make(); !s) return s;
  if (plan_.mix.is_writing()) records_.file().mark_changed();
  return {};
}

Status Ycsb::run(Stage& stage) {
  YcsbRun run(options_);
  RecordLocks locks;
  if (Status s = stage.settle(); !s) return s;
  auto mapped = stage.map({records_.file().uri(), 0, options_.size_bytes, plan_.mix.is_writing()});
  if (!mapped) return mapped.error();
  RecordTable table(records_.layout(), mapped.value(), locks);
  if (Status s = run.run(stage, table); !s) return s;
  return stage.finish(static_cast<double>(plan_.operations), "operations/s");
}

Status Ycsb::check(const RunResult& result) {
  if (result.is_stopped) return {};
  if (Status s = YcsbRun::check_answers(result); !s) return s;
  const auto found = records_.audit(YcsbRun::records_of(result));
  return found ? YcsbRun::check_table(result, found.value()) : found.status();
}

}  // namespace

std::unique_ptr<Workload> make_ycsb(const Options& options) {
  if (options.table == "heap") return make_ycsb_in_heap(options);
  return std::make_unique<Ycsb>(options);
}

}  // namespace outcore::bench
