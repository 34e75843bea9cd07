#include "bench/sample_check.h"

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "bench/check.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

// A right database tells 0.997 of all reads right of which that can be told, one whose taxa are
// mixed up next to none. One that has lost some pages still tells most, as a read has a hundred
// k-mers: the checksum finds it.
constexpr double kRightShareMin = 0.95;

}  // namespace

// Where species have most k-mers in common, few reads can be told right: then what is told must be
// true of next to all reads, and right of as many as the genomes themselves tell.
Status check_sample(const RunResult& result, uint64_t reads, double tellable_share,
                    uint64_t answers) {
  BENCH_CHECK(reads != 0 && tellable_share >= 0 && tellable_share <= 1);
  const auto all = static_cast<double>(reads);
  const double right = result.extra.value("right", 0.0) / all;
  const double is_true = right + result.extra.value("above", 0.0) / all;
  const double chance = 3 * std::sqrt(tellable_share * (1 - tellable_share) / all);
  const double right_min = std::max(0.0, kRightShareMin * tellable_share - chance);
  if (right < right_min)
    return Error{EILSEQ,
                 cli::format("%.1f %% of the reads were classified correctly, and not %.0f %%",
                             right * 100, right_min * 100)};
  if (is_true < kRightShareMin)
    return Error{
        EILSEQ,
        cli::format("%.1f %% of the reads were classified correctly or at a higher rank, and not "
                    "%.0f %%",
                    is_true * 100, kRightShareMin * 100)};
  return check_answers(result, answers);
}

Status check_answers(const RunResult& result, uint64_t answers) {
  if (result.extra.value("answers", uint64_t{0}) == answers) return {};
  return Error{EILSEQ, "the answers are not those of the database in plain memory"};
}

}  // namespace outcore::bench
