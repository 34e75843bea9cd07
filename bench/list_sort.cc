#include "bench/list_sort.h"

#include <algorithm>
#include <span>
#include <utility>

#include "bench/check.h"

namespace outcore::bench {

uint64_t ListSort::sort(WordRange range) {
  // Ranges of so many words are sorted by one thread at a go (512 KiB).
  static constexpr size_t kSmallWords = 64 * 1024;
  uint64_t sorted = 0;
  while (range.size() > kSmallWords) {
    const uint64_t middle = range.first + partition(range.in(words_));
    BENCH_CHECK(range.first < middle && middle < range.end);
    WordRange larger{middle, range.end}, smaller{range.first, middle};
    if (larger.size() < smaller.size()) std::swap(larger, smaller);
    if (!list_.push(larger)) sorted += sort(larger);
    range = smaller;
  }
  const std::span<uint64_t> small = range.in(words_);
  std::sort(small.begin(), small.end());
  stage_.progress(small.size());
  return sorted + small.size();
}

std::optional<uint64_t> ListSort::work() {
  const auto has_failed = [this] { return stage_.has_failed(); };
  uint64_t sorted = 0;
  for (WordRange range;;) {
    switch (list_.next(range, has_failed)) {
      case SortTask::kSort:
        sorted += sort(range);
        list_.done();
        break;
      case SortTask::kBegin:
        list_.begin(range, pivot_of(range.in(words_)));
        [[fallthrough]];
      case SortTask::kPartition:
        list_.take_part(words_);
        break;
      case SortTask::kNothing:
        return sorted;
      case SortTask::kFailed:
        return {};
    }
  }
}

}  // namespace outcore::bench
