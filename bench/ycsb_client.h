// YcsbClient: one thread's operations on a table, each answer verified.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/random.h"
#include "bench/record_numbers.h"
#include "bench/ycsb_mix.h"
#include "bench/ycsb_table.h"

namespace outcore::bench {

// Of operations that were done; `wrong` had an answer that cannot be.
struct YcsbCounts {
  uint64_t reads = 0, updates = 0, inserts = 0, scans = 0, scanned = 0, wrong = 0;

  YcsbCounts& operator+=(const YcsbCounts& other) {
    reads += other.reads;
    updates += other.updates;
    inserts += other.inserts;
    scans += other.scans;
    scanned += other.scanned;
    wrong += other.wrong;
    return *this;
  }
};

// One thread. What clients share outlives them all.
class YcsbClient {
 public:
  YcsbClient(const YcsbMix& mix, const YcsbChoice& choice, YcsbTable& table, RecordNumbers& numbers,
             uint64_t seed, uint64_t thread)
      : mix_(mix),
        choice_(choice),
        table_(table),
        numbers_(numbers),
        seed_(seed),
        random_(bench::mix(seed) + thread) {}

  // Draws an operation and a record, and does it.
  void do_next();
  const YcsbCounts& counts() const { return counts_; }

 private:
  bool read(uint64_t key);
  bool update(uint64_t key);
  bool read_and_update(uint64_t key);
  bool insert();
  bool scan(uint64_t key);

  const YcsbMix& mix_;
  const YcsbChoice& choice_;
  YcsbTable& table_;
  RecordNumbers& numbers_;
  uint64_t seed_;  // of the keys
  Random random_;
  Record copy_{};
  std::vector<YcsbTable::Entry> entries_;
  YcsbCounts counts_;
};

}  // namespace outcore::bench
