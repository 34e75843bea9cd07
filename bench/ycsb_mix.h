// YcsbMix: which operations a mix of the Yahoo! Cloud Serving Benchmark has, and on which records
// (core workloads A to F of Cooper et al., "Benchmarking cloud serving systems with YCSB", 2010).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/random.h"
#include "bench/zipf.h"

namespace outcore::bench {

enum class YcsbOperation { kRead, kUpdate, kInsert, kScan, kReadModifyWrite };

// Shares of all operations; what is left of 100 are reads.
struct YcsbMix {
  static constexpr uint64_t kScanRecordsMax = 100;  // a scan has 1 … so many, any as often

  const char* name;
  unsigned update_percent = 0, insert_percent = 0, scan_percent = 0, read_modify_write_percent = 0;
  bool reads_latest = false;  // the latest record most often, where the choice is not uniform

  bool is_writing() const {
    return update_percent + insert_percent + read_modify_write_percent != 0;
  }
  // How many are done if nothing else was asked for. A scan is as long as fifty reads.
  uint64_t operations_default() const { return scan_percent == 0 ? 200'000 : 10'000; }
  YcsbOperation next(Random& random) const;
  // Room that so many operations need for their inserts: eight standard deviations above the mean.
  uint64_t inserts_max(uint64_t operations) const;
};

const std::vector<std::string>& ycsb_mix_names();  // A … F
// REQUIRES: it is one of the names.
const YcsbMix& ycsb_mix(const std::string& name);

// Numbers of records, as a mix and a distribution have them. Records 0 … loaded - 1 are there
// before the run, and no more than `room` come. Read by any thread; each passes its own Random.
class YcsbChoice {
 public:
  enum class Kind { kUniform, kScrambled, kLatest };

  YcsbChoice(Kind kind, uint64_t loaded, uint64_t room, double theta, uint64_t seed)
      : kind_(kind),
        all_(loaded + room),
        zipf_(kind == Kind::kLatest ? loaded : all_, theta),
        permutation_(all_, seed) {}

  // A number below `records`, which are there now. REQUIRES: loaded <= records <= loaded + room.
  // Scrambled: by a permutation, so that each record is some rank's; YCSB hashes, and some ranks
  // meet on one record. Ranks of records that are not there yet are drawn again, as in YCSB.
  uint64_t next(uint64_t records, Random& random) const;

 private:
  Kind kind_;
  uint64_t all_;
  Zipf zipf_;
  Permutation permutation_;
};

}  // namespace outcore::bench
