// TwoPassSort: a sort in memory that has no room for all words: sorted runs, which are then merged.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "bench/run_plan.h"
#include "bench/stage.h"
#include "bench/word_file.h"
#include "outcore/result.h"

namespace outcore::bench {

// One process's part of it. Its memory is its share of the budget; all else goes through files.
class TwoPassSort {
 public:
  // `data` is sorted in place, `runs` has room for plan.file_bytes() (one pass: unused). `finished`
  // lies in memory that the processes share, and counts those that have made their runs. REQUIRES:
  // the stage is settled
  TwoPassSort(const RunPlan& plan, WordFile& data, WordFile* runs, std::atomic<unsigned>& finished,
              Stage& stage);

  // Errors: what the files say, ENOMEM, ECANCELED. Between start() and stop() of the stage.
  Status run();
  uint64_t words_done() const { return words_done_.load(); }  // in their place, by this process
  uint64_t runs_made() const { return runs_made_; }

 private:
  Status make_run(uint64_t number, std::span<uint64_t> memory);
  Status sort_run(std::span<uint64_t> words);
  // A part for each thread, of whole units: its first word, and its words.
  Status on_parts(
      std::span<uint64_t> words,
      const std::function<Status(uint64_t first, std::span<uint64_t> part)>& move) const;
  Status write_samples(uint64_t number, std::span<uint64_t> words);
  Status wait_for_runs() const;
  Status merge(std::span<uint64_t> memory);

  const RunPlan& plan_;
  WordFile& data_;
  WordFile* const runs_;
  std::atomic<unsigned>& finished_;
  Stage& stage_;
  const unsigned threads_, processes_;
  std::atomic<uint64_t> words_done_{0};
  uint64_t runs_made_ = 0;
};

}  // namespace outcore::bench
