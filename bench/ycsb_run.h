// YcsbRun: what a run of YCSB does on any table: clients on threads, and what they counted.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/histogram.h"
#include "bench/options.h"
#include "bench/record_numbers.h"
#include "bench/result.h"
#include "bench/stage.h"
#include "bench/ycsb_mix.h"
#include "bench/ycsb_table.h"
#include "outcore/result.h"

namespace outcore::bench {

// What a run is asked to do.
struct YcsbPlan {
  // REQUIRES: check_options() has nothing against the options.
  explicit YcsbPlan(const Options& options);

  const YcsbMix& mix;
  uint64_t operations;
  uint64_t room;    // for records that are inserted
  uint64_t loaded;  // records that are there before: with the room, as many as --size has
};

// One thread.
class YcsbRun {
 public:
  // Allocates what clients share. It comes before Stage::settle(): all of it is the program's own.
  // `options` outlive it.
  explicit YcsbRun(const Options& options);

  const YcsbPlan& plan() const { return plan_; }
  // The timed part, from start() to stop(), on a table that has the loaded records. Once.
  Status run(Stage& stage, YcsbTable& table);

  // Records that are there at the end.
  static uint64_t records_of(const RunResult& result);
  // EILSEQ: an answer cannot be.
  static Status check_answers(const RunResult& result);
  // EILSEQ: what was found of the table is not what the operations made of it.
  static Status check_table(const RunResult& result, const YcsbTable::Found& found);

 private:
  const Options& options_;
  YcsbPlan plan_;
  YcsbChoice choice_;
  RecordNumbers numbers_;
  std::vector<Histogram> latencies_;  // of each thread
};

}  // namespace outcore::bench
