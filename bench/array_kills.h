// ArrayKills: whether a container of arrays is whole after those who write it were killed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/checkpoints.h"

namespace outcore::bench {

struct ArrayKillOptions {
  uint64_t kills = 200;
  unsigned processes = 4;                  // in half of the lives; 1 or 2 in others
  uint64_t bytes_max = uint64_t{8} << 20;  // of an array
  uint64_t seed = 1;
  std::string dir;  // empty: OUTCORE_BENCH_DIR, TMPDIR, /var/tmp
};

// Each time all of the processes, or one of them, die by SIGKILL at a random instant, in whatever
// they do: making, replacing, renaming and removing arrays, in one session or the next. What had
// returned before must be there, element by element; what had not is there as a whole or not at
// all; and another session must work on it. EILSEQ: the first that was not right, after all kills.
Status measure_array_kills(const ArrayKillOptions& options, const SeeFigure& see,
                           const std::function<void(uint64_t done)>& progress);

}  // namespace outcore::bench
