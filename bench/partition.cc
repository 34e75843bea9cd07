#include "bench/partition.h"

#include <algorithm>
#include <functional>

#include "bench/check.h"

namespace outcore::bench {
namespace {

// As partition() by any pivot, also one that no word has; a part may be empty.
uint64_t split_by(std::span<uint64_t> range, uint64_t pivot) {
  size_t low = 0, high = range.size();
  while (true) {
    while (low < high && range[low] < pivot) ++low;
    while (low < high && range[high - 1] > pivot) --high;
    if (high - low <= 1) return low;  // one that is left is the pivot itself
    std::swap(range[low++], range[--high]);
  }
}

}  // namespace

uint64_t pivot_of(std::span<const uint64_t> range) {
  BENCH_CHECK(!range.empty());
  uint64_t samples[9];
  for (size_t i = 0; i < 9; ++i) samples[i] = range[range.size() * (2 * i + 1) / 18];
  std::nth_element(samples, samples + 4, samples + 9);
  return samples[4];
}

size_t partition(std::span<uint64_t> range) {
  BENCH_CHECK(range.size() >= 2);
  const uint64_t pivot = pivot_of(range);
  size_t low = 0, high = range.size() - 1;
  while (true) {
    while (range[low] < pivot) ++low;
    while (range[high] > pivot) --high;
    if (low >= high) break;
    std::swap(range[low++], range[high--]);
  }
  return std::clamp<size_t>(low, 1, range.size() - 1);
}

void BlockPair::exchange(uint64_t* words, uint64_t pivot) {
  uint64_t low = left.first, high = right.end;
  while (true) {
    while (low != left.end && words[low] < pivot) ++low;
    while (high != right.first && words[high - 1] > pivot) --high;
    if (low == left.end || high == right.first) break;
    std::swap(words[low++], words[--high]);
  }
  left.first = low;
  right.end = high;
}

void JointPartition::begin(WordRange range, uint64_t pivot) {
  BENCH_CHECK(range.first < range.end && workers_ == 0);
  *this = {};
  whole_ = middle_ = range;
  pivot_ = pivot;
}

std::optional<WordRange> JointPartition::take_left() {
  if (middle_.size() < kBlockWords) return {};
  middle_.first += kBlockWords;
  return WordRange{middle_.first - kBlockWords, middle_.first};
}

std::optional<WordRange> JointPartition::take_right() {
  if (middle_.size() < kBlockWords) return {};
  middle_.end -= kBlockWords;
  return WordRange{middle_.end, middle_.end + kBlockWords};
}

bool JointPartition::leave(const BlockPair& unfinished) {
  BENCH_CHECK(workers_ != 0);
  // The far ends of blocks are where they were: a left one is used up from its first word.
  if (unfinished.left.size() != 0) left_.firsts[left_.count++] = unfinished.left.end - kBlockWords;
  if (unfinished.right.size() != 0) right_.firsts[right_.count++] = unfinished.right.first;
  return --workers_ == 0 && middle_.size() < kBlockWords;
}

uint64_t JointPartition::finish(uint64_t* words) {
  BENCH_CHECK(workers_ == 0 && middle_.size() < kBlockWords);
  const auto exchange_blocks = [&](uint64_t a, uint64_t b) {
    if (a != b) std::swap_ranges(words + a, words + a + kBlockWords, words + b);
  };
  // What is unfinished comes to the middle, in exchange for finished blocks that are there.
  std::sort(left_.firsts, left_.firsts + left_.count, std::greater<>());
  for (unsigned i = 0; i < left_.count; ++i)
    exchange_blocks(left_.firsts[i], middle_.first -= kBlockWords);
  std::sort(right_.firsts, right_.firsts + right_.count);
  for (unsigned i = 0; i < right_.count; ++i) {
    exchange_blocks(right_.firsts[i], middle_.end);
    middle_.end += kBlockWords;
  }
  const uint64_t split = middle_.first + split_by(middle_.in(words), pivot_);
  if (split != whole_.first && split != whole_.end) return split;
  // The pivot was the smallest of all words, or the largest.
  return whole_.first + partition(whole_.in(words));
}

}  // namespace outcore::bench
