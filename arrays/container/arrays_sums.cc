// Checksums of arrays that are not compressed. They are computed while boxes are written, and put
// together when the arrays are finished. See arrays_impl.h and block_sums.h.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>

#include "arrays/container/arrays_impl.h"
#include "arrays/container/workers.h"
#include "core/base/assert.h"

namespace outcore {

using arrays::BlockSum;
using arrays::BlockSums;
using arrays::Entry;
using arrays::Runs;

namespace {

constexpr uint64_t kReadBytes = 1 << 20;    // how much of a block is read at a time
constexpr uint64_t kBesideBytes = 2 << 20;  // a box of so many bytes is worth a second thread

// The number of the tile with this element. The last dimension varies fastest.
uint64_t tile_number(const Dims& shape, const Dims& tiles, const Dims& at) {
  uint64_t number = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    number = number * ((shape[d] + tiles[d] - 1) / tiles[d]) + at[d] / tiles[d];
  return number;
}

BlockSums sums_of_box(const Entry& entry, const std::byte* from, const Dims& at, const Dims& box) {
  const Dims zero(box.size(), 0);
  const Runs runs = arrays::runs_of(entry.type.size_bytes, arrays::in_rows(entry, entry.dims), at,
                                    box, zero, box);
  BlockSums sums(entry.block_bytes, runs.there, runs.there + runs.span_bytes() - 1);
  sums.add(0, runs, from);
  return sums;
}

BlockSums sums_of_tiles(const Entry& entry, const std::byte* from, const Dims& at,
                        const Dims& box) {
  const Dims shape = arrays::in_rows(entry, entry.dims),
             tiles = arrays::in_rows(entry, entry.tiles);
  const uint64_t tile_bytes = arrays::bytes_of_tile(entry);
  Dims end = at;
  for (size_t d = 0; d < end.size(); ++d) end[d] += box[d] - 1;
  BlockSums sums(entry.block_bytes, tile_number(shape, tiles, at) * tile_bytes,
                 (tile_number(shape, tiles, end) + 1) * tile_bytes - 1);
  arrays::for_each_tile(entry.type.size_bytes, shape, tiles, at, box,
                        [&](uint64_t number, const Runs& runs) {
                          sums.add(number * tile_bytes, runs, from);
                          return false;
                        });
  return sums;
}

bool is_touched(const BlockSum& block) { return block.cover != 0 || block.sum != 0; }

}  // namespace

// The disk should not wait, so the sum of a large box is computed by a second thread meanwhile.
Status Arrays::Impl::write_and_sum(const Entry& entry, const std::byte* from, const Dims& at,
                                   const Dims& box, const std::function<Status()>& write) {
  uint64_t bytes = entry.type.size_bytes;
  for (const uint64_t n : box) bytes *= n;
  Status written, counted;
  std::atomic<int> next{0};
  const auto count = [&] {
    const BlockSums mine = entry.tiles.empty() ? sums_of_box(entry, from, at, box)
                                               : sums_of_tiles(entry, from, at, box);
    const std::lock_guard<std::mutex> guard(sums_mutex);
    sums.try_emplace(entry.id, entry).first->second.add(mine);
    return Status();
  };
  const auto work = [&]() noexcept {
    for (int task = next++; task < 2; task = next++) {
      Status& s = task == 0 ? written : counted;
      try {
        s = task == 0 ? write() : count();
      } catch (const std::bad_alloc&) {
        s = Error{ENOMEM, "there is no memory to store it"};
      }
    }
  };
  arrays::run_by_workers(bytes >= kBesideBytes ? 2 : 1, work);
  return written.ok() ? counted : written;
}

void Arrays::Impl::forget_sums(uint64_t id) {
  const std::lock_guard<std::mutex> guard(sums_mutex);
  sums.erase(id);
}

Status Arrays::Impl::hand_over_sums() {
  if (together.size == 1) return {};
  const CatalogLock lock(*this);
  if (!lock.status().ok()) return lock.status();
  const std::lock_guard<std::mutex> guard(sums_mutex);
  for (auto& [id, mine] : sums) {
    const auto found = catalog->entries().find(id);
    if (found == catalog->entries().end()) continue;
    const Entry& entry = found->second;
    const std::span<BlockSum> blocks = mine.blocks();
    const auto first = std::find_if(blocks.begin(), blocks.end(), is_touched);
    const auto end = std::find_if(blocks.rbegin(), blocks.rend(), is_touched).base();
    if (first == blocks.end()) continue;
    OC_CHECK(first < end);
    std::vector<BlockSum> there(static_cast<size_t>(end - first));
    const uint64_t at = arrays::sums_offset(entry) +
                        arrays::sums_bytes(static_cast<uint64_t>(first - blocks.begin()));
    const auto bytes = std::as_writable_bytes(std::span(there));
    if (Status s = storage->read(at, bytes); !s) return s;
    for (size_t i = 0; i < there.size(); ++i) {
      if (!is_touched(first[static_cast<ptrdiff_t>(i)])) continue;
      const BlockSum& block = first[static_cast<ptrdiff_t>(i)];
      const bool is_new = entry.session == session;
      // Blocks that were changed in place are read again.
      there[i] =
          is_new ? BlockSum{there[i].sum + block.sum, there[i].cover + block.cover} : BlockSum{};
    }
    if (Status s = storage->write(at, bytes); !s) return s;
  }
  sums.clear();
  return {};
}

Result<uint64_t> Arrays::Impl::sum_of_block(const Entry& entry, uint64_t block) const {
  const uint64_t first = block * entry.block_bytes;
  const uint64_t end = std::min(first + entry.block_bytes, arrays::bytes_of(entry));
  OC_CHECK(entry.block_bytes != 0 && first < end);
  std::vector<std::byte> bytes(std::min(kReadBytes, end - first));
  uint64_t sum = 0;
  for (uint64_t at = first; at < end; at += bytes.size()) {
    const auto part = std::span(bytes).first(std::min<uint64_t>(bytes.size(), end - at));
    if (Status s = storage->read(entry.offset + at, part); !s) return s.error();
    sum += arrays::sum_of(at, part);
  }
  return sum;
}

Status Arrays::Impl::close_sums(Entry* entry) {
  if (entry->block_bytes == 0) return {};
  OC_ASSERT(entry->compress.empty());
  const bool is_new = !entry->are_sums_open;
  BlockSums all(*entry);
  const std::span<BlockSum> blocks = all.blocks();
  const auto bytes = std::as_writable_bytes(blocks);
  const uint64_t at = arrays::sums_offset(*entry);
  if (!is_new || together.size > 1)
    if (Status s = storage->read(at, bytes); !s) return s;
  const BlockSums full = arrays::full_cover(*entry);
  std::vector<bool> is_known(blocks.size());
  for (size_t b = 0; b < blocks.size(); ++b)
    is_known[b] = is_new ? blocks[b].cover == full.blocks()[b].cover
                         : blocks[b].cover == arrays::mark_of(blocks[b].sum, b);
  const std::lock_guard<std::mutex> guard(sums_mutex);
  if (const auto mine = sums.find(entry->id); mine != sums.end() && together.size == 1) {
    OC_CHECK(mine->second.blocks().size() == blocks.size());
    for (size_t b = 0; b < blocks.size(); ++b) {
      const BlockSum& counted = mine->second.blocks()[b];
      if (!is_touched(counted)) continue;
      blocks[b].sum = counted.sum;
      is_known[b] = counted.cover == full.blocks()[b].cover;
    }
    sums.erase(mine);
  }
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (!is_known[b]) {
      const auto sum = sum_of_block(*entry, b);
      if (!sum) return sum.status();
      blocks[b].sum = sum.value();
    }
    blocks[b].cover = arrays::mark_of(blocks[b].sum, b);
  }
  entry->are_sums_open = false;
  return storage->write(at, bytes);
}

}  // namespace outcore
