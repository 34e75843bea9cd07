#include "bench/ycsb_mix.h"

#include <algorithm>
#include <cmath>

#include "bench/check.h"

namespace outcore::bench {
namespace {

constexpr YcsbMix kMixes[] = {
    {.name = "A", .update_percent = 50},
    {.name = "B", .update_percent = 5},
    {.name = "C"},
    {.name = "D", .insert_percent = 5, .reads_latest = true},
    {.name = "E", .insert_percent = 5, .scan_percent = 95},
    {.name = "F", .read_modify_write_percent = 50},
};

}  // namespace

const std::vector<std::string>& ycsb_mix_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const YcsbMix& each : kMixes) all.emplace_back(each.name);
    return all;
  }();
  return names;
}

const YcsbMix& ycsb_mix(const std::string& name) {
  const YcsbMix* found = nullptr;
  for (const YcsbMix& each : kMixes)
    if (name == each.name) found = &each;
  BENCH_CHECK(found != nullptr);
  return *found;
}

YcsbOperation YcsbMix::next(Random& random) const {
  uint64_t percent = random.below(100);
  const auto is_of = [&](unsigned share) {
    const bool is_so = percent < share;
    percent -= is_so ? 0 : share;
    return is_so;
  };
  if (is_of(update_percent)) return YcsbOperation::kUpdate;
  if (is_of(insert_percent)) return YcsbOperation::kInsert;
  if (is_of(scan_percent)) return YcsbOperation::kScan;
  if (is_of(read_modify_write_percent)) return YcsbOperation::kReadModifyWrite;
  return YcsbOperation::kRead;
}

uint64_t YcsbMix::inserts_max(uint64_t operations) const {
  if (insert_percent == 0) return 0;
  const double mean = static_cast<double>(operations) * insert_percent / 100;
  const double bound = mean + 8 * std::sqrt(mean) + 8;
  return std::min(operations, static_cast<uint64_t>(bound));
}

uint64_t YcsbChoice::next(uint64_t records, Random& random) const {
  BENCH_CHECK(records != 0 && records <= all_);
  if (kind_ == Kind::kUniform) return random.below(records);
  if (kind_ == Kind::kLatest) return records - 1 - zipf_.next(random);
  while (true) {
    const uint64_t number = permutation_(zipf_.next(random));
    if (number < records) return number;
  }
}

}  // namespace outcore::bench
