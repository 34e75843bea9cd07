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
// Space goes back to the filesystem in groups of 64 neighbouring blocks, a word of bits. For a
// single block that would take a fifth of a millisecond, and fragment the file.
constexpr uint64_t kGroup = 64;
constexpr uint64_t kPunchedGroupsMax = 256;

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
    const uint64_t first = groups[i];
    uint64_t count = 0;
    for (; i < groups.size() && groups[i] == first + count && count < kPunchedGroupsMax; ++i) {
      if (!claim_group(groups[i])) break;
      ++count;
    }
    if (count == 0) {
      ++i;
      continue;
    }
    data_.punch(first * kGroup * chunk_bytes_, count * kGroup * chunk_bytes_);
    const os::SignalBlock block_signals;
    const os::Locked locked(lock_);
    OC_CHECK(used_count_ >= count * kGroup);
    for (uint64_t group = first; group < first + count; ++group) bits_[group] = 0;
    used_count_ -= count * kGroup;
  }
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
