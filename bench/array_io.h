// ArrayIo: named arrays beside the plainest that there is, a mapped file and a file for each
// process: written durably by several processes, read cold by the same boxes and by others.
#pragma once

#include "bench/checkpoints.h"

namespace outcore::bench {

struct ArrayIoOptions {
  uint64_t size_bytes = uint64_t{1} << 30;  // of all variables together
  unsigned processes = 4;                   // 1, 2 or 4
  unsigned variables = 2;
  unsigned rounds = 3;  // medians are shown
  uint64_t seed = 1;
  std::string dir;  // empty: OUTCORE_BENCH_DIR, TMPDIR, /var/tmp
};

// EILSEQ: something was read that was not written.
Status measure_array_io(const ArrayIoOptions& options, const SeeFigure& see);

}  // namespace outcore::bench
