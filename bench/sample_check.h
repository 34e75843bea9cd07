// SampleCheck: whether the reads of a run of kmers were told as they must be, by whatever index.
#pragma once

#include <cstdint>

#include "bench/result.h"
#include "outcore/result.h"

namespace outcore::bench {

inline constexpr uint64_t kSampleReadsDefault = 2000;

// By "right", "above" and "answers" of the run: `reads` were told; right can be told the tellable
// share of them (Genomes::tellable_share()); `answers` is the checksum of what the database in
// plain memory told of them. Errors: EILSEQ.
Status check_sample(const RunResult& result, uint64_t reads, double tellable_share,
                    uint64_t answers);
// By "answers" alone. Errors: EILSEQ.
Status check_answers(const RunResult& result, uint64_t answers);

}  // namespace outcore::bench
