#include "checkpoints/pool/block_heap.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::versioned {
namespace {

constexpr uint64_t kGrowBytesMin = 1 << 20;
constexpr uint64_t kGrowBytesMax = 256 << 20;
// Free blocks are searched from the beginning again when they are this part of the file. Earlier,
// single free blocks here and there would turn one large write into many small ones.
constexpr uint64_t kFreeShare = 8;
constexpr uint64_t kPunchedGroupsMax = 256;
constexpr uint64_t kPunchedSinglesMax = 16384;

}  // namespace

bool is_needed(const Grave& grave, std::span<const uint32_t> held) {
  OC_ASSERT(held.empty() || held.front() <= held.back());
  const auto after = std::lower_bound(held.begin(), held.end(), grave.birth);
  return after != held.end() && *after < grave.death;
}

bool BlockHeap::cover(uint64_t capacity) {
  if (capacity <= capacity_) return true;
  if (!bits_.resize((capacity + 63) / 64)) return false;
  if (capacity_ == 0) bits_[0] |= 1;  // block 0 is never allocated
  capacity_ = capacity;
  OC_ASSERT(bits_.size() * 64 >= capacity_ && bit(0));
  return true;
}

bool BlockHeap::cover_file() {
  return cover(std::clamp<uint64_t>(data_.size_bytes() / chunk_bytes_, 1, kBlocksMax));
}

bool BlockHeap::mark_used(uint32_t block) {
  if (block == 0 || block >= capacity_ || bit(block)) return false;
  bits_[block / 64] |= uint64_t{1} << block % 64;
  ++used_count_;
  return true;
}

bool BlockHeap::is_used(uint32_t block) const {
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  return block < capacity_ && bit(block);
}

// Takes the first free blocks of [begin, end).
Run BlockHeap::take_from(uint64_t begin, uint64_t end, uint32_t most) {
  OC_CHECK(end <= capacity_ && most != 0);
  uint64_t at = begin;
  while (at < end) {
    const uint64_t free_bits = ~bits_[at / 64] >> at % 64;
    if (free_bits != 0) {
      at += static_cast<uint64_t>(__builtin_ctzll(free_bits));
      break;
    }
    at = (at / 64 + 1) * 64;
  }
  Run run;
  run.first = static_cast<uint32_t>(at);
  for (; at < end && run.count < most && !bit(at); ++at, ++run.count)
    bits_[at / 64] |= uint64_t{1} << at % 64;
  used_count_ += run.count;
  if (run.count > 0) cursor_ = at;
  OC_CHECK(run.count == 0 || run.first != 0);
  OC_CHECK(run.count <= most && used_count_ < capacity_);
  return run;
}

Run BlockHeap::allocate(uint32_t most, int& error) {
  const os::SignalBlock block_signals;
  bool may_grow = true;
  error = 0;
  while (true) {
    const auto got = [&](const Run& run) {
      if (run.count > 0) error = 0;
      return run.count > 0;
    };
    uint64_t seen_capacity = 0;
    {
      const os::Locked locked(lock_);
      if (const Run run = take_from(cursor_, capacity_, most); got(run)) return run;
      OC_CHECK(used_count_ < capacity_);
      const uint64_t free_count = capacity_ - 1 - used_count_;
      if (free_count * kFreeShare >= capacity_ || (!may_grow && free_count > 0))
        if (const Run run = take_from(1, capacity_, most); got(run)) return run;
      seen_capacity = capacity_;
    }
    if (!may_grow) return {};
    const os::Locked locked(growing_);
    {
      const os::Locked inner(lock_);
      if (capacity_ > seen_capacity) continue;  // another thread has enlarged the file
    }
    error = grow(most);
    may_grow = error == 0;
  }
}

// Enlarges the file by a step, or by as much as there is space for. 0 or -errno.
int BlockHeap::grow(uint64_t wanted) {
  OC_ASSERT(wanted != 0 && chunk_bytes_ != 0);
  const uint64_t now = capacity_;  // only changed under growing_
  const uint64_t least = std::min<uint64_t>(wanted, 1);
  uint64_t step =
      std::clamp<uint64_t>(now * chunk_bytes_ / 8, kGrowBytesMin, kGrowBytesMax) / chunk_bytes_;
  step = std::max<uint64_t>(step, 1);
  if (now + 1 >= kBlocksMax) return -EFBIG;
  step = std::min<uint64_t>(step, kBlocksMax - now);
  while (true) {
    const int error = data_.allocate(now * chunk_bytes_, step * chunk_bytes_);
    if (error == 0) break;
    if (step <= least) return error;
    step = std::max(step / 4, least);
  }
  const os::Locked locked(lock_);
  return cover(now + step) ? 0 : -ENOMEM;
}

void BlockHeap::free_locked(uint32_t block) {
  OC_CHECK(block != 0 && block < capacity_ && bit(block));
  OC_CHECK(used_count_ != 0);
  bits_[block / 64] &= ~(uint64_t{1} << block % 64);
  --used_count_;
  ++freed_count_;
}

void BlockHeap::free(uint32_t block) {
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  free_locked(block);
}

int BlockHeap::bury(const Grave& grave) {
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  OC_CHECK(grave.block != 0 && grave.birth < grave.death);
  OC_ASSERT(grave.block < capacity_ && bit(grave.block));
  return fresh_.push_back(grave) ? 0 : -ENOMEM;
}

void BlockHeap::take_graves(MappedArray<Grave>& into) {
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  OC_CHECK(into.empty());
  into.swap(fresh_);
}

void BlockHeap::return_graves(MappedArray<Grave>& graves) {
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  // If there is no memory for them, their blocks stay in use until the pool is opened again.
  if (!fresh_.append(graves)) return;
  graves.clear();
}

void BlockHeap::settle(MappedArray<Grave>& graves, std::span<const uint32_t> held) {
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  for (const Grave& grave : graves)
    if (!is_needed(grave, held))
      free_locked(grave.block);
    else
      kept_.push_back(grave);
  graves.clear();
}

std::vector<Run> BlockHeap::remove_unneeded(std::span<const uint32_t> held) {
  MappedArray<uint32_t> blocks;
  {
    const os::SignalBlock block_signals;
    const os::Locked locked(lock_);
    size_t kept_count = 0;
    for (const Grave& grave : kept_)
      if (is_needed(grave, held) || !blocks.push_back(grave.block)) kept_[kept_count++] = grave;
    kept_.truncate(kept_count);
  }
  std::sort(blocks.begin(), blocks.end());
  OC_ASSERT(std::adjacent_find(blocks.begin(), blocks.end()) == blocks.end());
  std::vector<Run> runs;
  for (const uint32_t block : blocks)
    if (!runs.empty() && runs.back().first + runs.back().count == block)
      ++runs.back().count;
    else
      runs.push_back({block, 1});
  return runs;
}

void BlockHeap::free_runs(const std::vector<Run>& runs) {
  OC_ASSERT(std::all_of(runs.begin(), runs.end(), [](const Run& run) { return run.count != 0; }));
  std::vector<uint64_t> groups;
  {
    const os::SignalBlock block_signals;
    const os::Locked locked(lock_);
    for (const Run run : runs)
      for (uint32_t i = 0; i < run.count; ++i) free_locked(run.first + i);
  }
  for (const Run run : runs)
    for (uint64_t group = run.first / kGroup; group <= (run.first + run.count - 1) / kGroup;
         ++group)
      if (groups.empty() || groups.back() != group) groups.push_back(group);
  for (size_t i = 0; i < groups.size();) {
    const size_t first = i++;
    while (i < groups.size() && groups[i] == groups[i - 1] + 1) ++i;
    give_back(groups[first], groups[i - 1] + 1);
  }
}

void BlockHeap::free_young(uint32_t commit) {
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  size_t kept_count = 0;
  for (const Grave& grave : fresh_)
    if (grave.birth <= commit)
      fresh_[kept_count++] = grave;
    else
      free_locked(grave.block);
  fresh_.truncate(kept_count);
}

void BlockHeap::give_back_groups() {
  uint64_t end = 0;
  {
    const os::SignalBlock block_signals;
    const os::Locked growing(growing_);  // another thread may be doing it
    const os::Locked locked(lock_);
    if (freed_count_ - freed_at_groups_ < kGroup) return;
    freed_at_groups_ = freed_count_;
    end = capacity_ / kGroup;
  }
  give_back(0, end);
}

void BlockHeap::give_back_singles() {
  uint64_t word_count = 0;
  {
    const os::SignalBlock block_signals;
    const os::Locked locked(lock_);
    if (freed_count_ == freed_at_singles_) return;
    freed_at_singles_ = freed_count_;
    word_count = capacity_ / kGroup;
  }
  uint64_t punched = 0, seen = 0;
  for (; seen < word_count && punched < kPunchedSinglesMax; ++seen) {
    singles_cursor_ = (singles_cursor_ + 1) % word_count;
    punched += punch_free_of(singles_cursor_);
  }
  if (seen == word_count) return;
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  freed_at_singles_ = 0;  // the next call goes on
}

void BlockHeap::give_back(uint64_t first_group, uint64_t end_group) {
  for (uint64_t group = first_group; group < end_group;)
    group += std::max<uint64_t>(punch_groups(group, end_group), 1);
}

// Gives back the free groups that begin with this one, up to the first that is not free, and not
// too many at a time: meanwhile they look used. A writer that finds no other space waits for
// growing_, and then looks again. Returns their number.
uint64_t BlockHeap::punch_groups(uint64_t first_group, uint64_t end_group) {
  const os::SignalBlock block_signals;
  const os::Locked growing(growing_);
  end_group = std::min(end_group, first_group + kPunchedGroupsMax);
  uint64_t end = first_group;
  while (end < end_group && claim_group(end)) ++end;
  const uint64_t count = end - first_group;
  if (count == 0) return 0;
  data_.punch(first_group * kGroup * chunk_bytes_, count * kGroup * chunk_bytes_);
  const os::Locked locked(lock_);
  OC_CHECK(used_count_ >= count * kGroup);
  for (uint64_t group = first_group; group < end; ++group) bits_[group] = 0;
  used_count_ -= count * kGroup;
  return count;
}

// Gives back the free blocks of a word of bits. Returns how many pieces they were.
uint64_t BlockHeap::punch_free_of(uint64_t word) {
  const os::SignalBlock block_signals;
  const os::Locked growing(growing_);
  uint64_t free_bits = 0;
  {
    const os::Locked locked(lock_);
    if ((word + 1) * kGroup > capacity_ || bits_[word] == UINT64_MAX) return 0;
    free_bits = ~bits_[word];
    bits_[word] = UINT64_MAX;
    used_count_ += static_cast<uint64_t>(__builtin_popcountll(free_bits));
  }
  uint64_t pieces = 0;
  for (uint64_t at = 0; at < kGroup; ++at) {
    const uint64_t first = at;
    while (at < kGroup && (free_bits >> at & 1) != 0) ++at;
    if (at == first) continue;
    data_.punch((word * kGroup + first) * chunk_bytes_, (at - first) * chunk_bytes_);
    ++pieces;
  }
  const os::Locked locked(lock_);
  bits_[word] &= ~free_bits;
  used_count_ -= static_cast<uint64_t>(__builtin_popcountll(free_bits));
  return pieces;
}

// Marks all blocks of the group as used, if all of them are free. False: they are not.
bool BlockHeap::claim_group(uint64_t group) {
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  if (bits_[group] != 0 || (group + 1) * kGroup > capacity_) return false;
  bits_[group] = UINT64_MAX;
  used_count_ += kGroup;
  return true;
}

void BlockHeap::resurrect(const MappedArray<uint32_t>& blocks) {
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  OC_ASSERT(std::is_sorted(blocks.begin(), blocks.end()));
  for (MappedArray<Grave>* const graves : {&kept_, &fresh_}) {
    size_t count = 0;
    for (const Grave& grave : *graves)
      if (!std::binary_search(blocks.begin(), blocks.end(), grave.block))
        (*graves)[count++] = grave;
    graves->truncate(count);
  }
}

uint64_t BlockHeap::capacity() const {
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  return capacity_;
}

uint64_t BlockHeap::used_count() const {
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  return used_count_;
}

uint64_t BlockHeap::kept_count() const {
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  return kept_.size();
}

bool BlockHeap::is_valid() const {
  const os::SignalBlock block_signals;
  const os::Locked locked(lock_);
  uint64_t count = 0;
  for (const uint64_t word : bits_) count += static_cast<uint64_t>(__builtin_popcountll(word));
  const auto is_buried = [this](const Grave& g) { return g.birth < g.death && bit(g.block); };
  return count == used_count_ + 1 && std::all_of(kept_.begin(), kept_.end(), is_buried) &&
         std::all_of(fresh_.begin(), fresh_.end(), is_buried);
}

}  // namespace outcore::versioned
