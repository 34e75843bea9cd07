// RunMerge: a part of the merge of all sorted runs, by one thread: the words of a range of keys.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bench/run_plan.h"
#include "bench/word_file.h"
#include "outcore/result.h"

namespace outcore::bench {

class RunMerge {
 public:
  // `room`: memory aligned to units, of a unit for each run and one more, or larger.
  RunMerge(const RunPlan& plan, WordFile& runs, std::span<uint64_t> room);

  // Writes part `part` of `parts` to its place; parts are about equal, but where many words are.
  // `see` hears of words that were written; false ends it. Errors: what the files say, ECANCELED.
  Status merge(unsigned part, unsigned parts, WordFile& to,
               const std::function<bool(uint64_t words)>& see);

 private:
  // Where a run is read, as far as it is in memory.
  struct Cursor {
    uint64_t* at = nullptr;
    uint64_t* end = nullptr;
    uint64_t* memory = nullptr;
    uint64_t next = 0;            // the first word that is not in memory
    uint64_t soon = 0, last = 0;  // where the part, and the run, end
  };
  // The next word of a run. Order decides between equal ones: runs that are at their end come last.
  struct Entry {
    uint64_t word = 0, order = 0, run = 0;
    bool operator<(const Entry& other) const {
      return word != other.word ? word < other.word : order < other.order;
    }
  };

  Status read_samples();
  uint64_t key_of(unsigned part, unsigned parts) const;
  // How many words of each run come before part `part`.
  Result<std::vector<uint64_t>> cut(unsigned part, unsigned parts);
  Result<uint64_t> words_below(uint64_t key, uint64_t run);
  std::span<const uint64_t> samples(uint64_t run) const;
  Status begin(const std::vector<uint64_t>& firsts, const std::vector<uint64_t>& ends);
  Status fill(Cursor& cursor);
  Entry entry_of(uint64_t run) const;
  Entry build(uint64_t node);
  // Takes the smallest word of all runs. False: what followed could not be read (status_).
  bool take(uint64_t& word);

  const RunPlan& plan_;
  WordFile& runs_;
  std::span<uint64_t> room_;
  uint64_t buffer_words_;
  std::vector<Cursor> cursors_;
  std::vector<Entry> losers_;  // of the tournament, by node; its leaves are the runs
  Entry winner_;
  Status status_;
};

}  // namespace outcore::bench
