#include "core/store/overlay_store.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::store {
namespace {

constexpr uint64_t kBlock = base::kSystemPage;

// The smaller of two limits; 0 means no limit.
unsigned smaller_limit(unsigned a, unsigned b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

}  // namespace

std::shared_ptr<Store> make_overlay(std::shared_ptr<Store> base, std::shared_ptr<Store> scratch,
                                    uint64_t first_offset, uint64_t size_bytes) {
  auto overlay =
      std::make_shared<OverlayStore>(std::move(base), std::move(scratch), first_offset, size_bytes);
  if (overlay->prepare() != 0) return nullptr;
  return overlay;
}

OverlayStore::OverlayStore(std::shared_ptr<Store> base, std::shared_ptr<Store> scratch,
                           uint64_t first_offset, uint64_t size_bytes)
    : base_(std::move(base)),
      scratch_(std::move(scratch)),
      first_(first_offset),
      end_(first_offset + size_bytes) {
  OC_CHECK(base_ != nullptr);
  OC_CHECK(first_offset % kBlock == 0);
  OC_CHECK(end_ >= first_);
  OC_CHECK(scratch_->size_bytes() >= size_bytes);
}

int OverlayStore::prepare() { return written_.cover(end_ - first_, kBlock); }

uint64_t OverlayStore::size_bytes() const { return std::max(base_->size_bytes(), end_); }

bool OverlayStore::is_inside(uint64_t offset, uint64_t size_bytes) const {
  return offset >= first_ && offset <= end_ && size_bytes <= end_ - offset;
}

bool OverlayStore::is_whole_blocks(uint64_t offset, uint64_t size_bytes) const {
  return offset % kBlock == 0 && (size_bytes % kBlock == 0 || offset + size_bytes == end_);
}

// The end of the run of bytes at `offset` that come from the same store; is_own: from scratch.
uint64_t OverlayStore::run_end(uint64_t offset, uint64_t end, bool& is_own) const {
  is_own = false;
  if (offset < first_) return std::min(end, first_);
  if (offset >= end_) return end;
  is_own = written_.is_written(offset - first_);
  return first_ + written_.run_end(offset - first_, std::min(end, end_) - first_);
}

int OverlayStore::read_base(uint64_t offset, std::span<std::byte> into) {
  const uint64_t size = base_->size_bytes();
  const auto stored =
      static_cast<size_t>(offset >= size ? 0 : std::min<uint64_t>(into.size(), size - offset));
  std::memset(into.data() + stored, 0, into.size() - stored);
  return stored == 0 ? 0 : base_->read(offset, into.first(stored));
}

int OverlayStore::read(uint64_t offset, std::span<std::byte> into) {
  const uint64_t end = offset + into.size();
  OC_CHECK(end >= offset);
  OC_CHECK(end <= size_bytes());
  while (offset < end) {
    bool is_own = false;
    const auto run = static_cast<size_t>(run_end(offset, end, is_own) - offset);
    OC_CHECK(run != 0);
    OC_CHECK(run <= into.size());
    const auto part = into.first(run);
    const int error = is_own ? scratch_->read(offset - first_, part) : read_base(offset, part);
    if (error != 0) return error;
    into = into.subspan(run);
    offset += run;
  }
  return 0;
}

// Marks the blocks only after success: a block whose write failed still reads from the base.
int OverlayStore::write_blocks(uint64_t offset, std::span<const std::byte> from) {
  OC_CHECK(is_inside(offset, from.size()));
  OC_ASSERT(is_whole_blocks(offset, from.size()));
  const int error = scratch_->write(offset - first_, from);
  if (error == 0) written_.mark(offset - first_, from.size());
  return error;
}

// Writes a part of one block. The lock protects against two threads that copy the same block and
// write different parts of it.
int OverlayStore::write_part(uint64_t offset, std::span<const std::byte> from) {
  const std::lock_guard lock(part_mutex_);
  if (written_.is_written(offset - first_)) return scratch_->write(offset - first_, from);
  alignas(kBlock) std::array<std::byte, kBlock> block;
  const uint64_t start = base::round_down(offset, kBlock);
  const auto whole = std::span(block).first(static_cast<size_t>(std::min(kBlock, end_ - start)));
  OC_CHECK(offset - start + from.size() <= whole.size());
  if (const int error = read_base(start, whole); error != 0) return error;
  std::memcpy(whole.data() + (offset - start), from.data(), from.size());
  return write_blocks(start, whole);
}

int OverlayStore::write(uint64_t offset, std::span<const std::byte> from) {
  if (!is_inside(offset, from.size())) return -EACCES;
  while (!from.empty()) {
    const uint64_t block_end = std::min(base::round_down(offset, kBlock) + kBlock, end_);
    uint64_t piece_end = offset + from.size();
    if (!is_whole_blocks(offset, from.size()))
      piece_end = offset % kBlock != 0 || piece_end < block_end
                      ? std::min(piece_end, block_end)
                      : base::round_down(piece_end, kBlock);
    OC_CHECK(piece_end > offset);
    const auto piece = from.first(static_cast<size_t>(piece_end - offset));
    const bool is_whole = is_whole_blocks(offset, piece.size());
    const int error = is_whole ? write_blocks(offset, piece) : write_part(offset, piece);
    if (error != 0) return error;
    from = from.subspan(piece.size());
    offset = piece_end;
  }
  return 0;
}

// The store that can carry out the whole request, and the offset there; nullptr if several steps
// are needed.
Store* OverlayStore::target_of(const StoreRequest& request, uint64_t& offset) const {
  if (request.size_bytes == 0) return nullptr;
  const uint64_t end = request.offset + request.size_bytes;
  bool is_own = request.is_write;
  if (request.is_write) {
    if (!is_inside(request.offset, request.size_bytes) ||
        !is_whole_blocks(request.offset, request.size_bytes))
      return nullptr;
  } else if (run_end(request.offset, end, is_own) != end ||
             (!is_own && end > base_->size_bytes())) {
    return nullptr;
  }
  offset = is_own ? request.offset - first_ : request.offset;
  return is_own ? scratch_.get() : base_.get();
}

void OverlayStore::transfer(std::span<StoreRequest> batch) {
  // Neighbours in the batch that belong to the same store are transferred together.
  std::array<StoreRequest, 64> forward;
  for (size_t i = 0; i < batch.size();) {
    Store* target = nullptr;
    size_t count = 0;
    while (i + count < batch.size() && count < forward.size()) {
      uint64_t offset = 0;
      Store* const here = target_of(batch[i + count], offset);
      if (here == nullptr || (target != nullptr && here != target)) break;
      target = here;
      forward[count] = batch[i + count];
      forward[count++].offset = offset;
    }
    if (count == 0) {
      StoreRequest& r = batch[i++];
      r.result = r.is_write ? write(r.offset, {r.bytes, r.size_bytes})
                            : read(r.offset, {r.bytes, r.size_bytes});
      continue;
    }
    target->transfer(std::span(forward).first(count));
    for (size_t k = 0; k < count; ++k) {
      StoreRequest& r = batch[i + k];
      r.result = forward[k].result;
      OC_ASSERT(r.result <= 0);
      if (r.is_write && r.result == 0) written_.mark(r.offset - first_, r.size_bytes);
    }
    i += count;
  }
}

bool OverlayStore::is_hole(uint64_t offset, uint64_t size_bytes) const {
  const uint64_t end = offset + size_bytes;
  const uint64_t from = std::clamp(offset, first_, end_);
  const uint64_t to = std::clamp(end, first_, end_);
  if (from < to && !written_.is_untouched(from - first_, to - from)) return false;
  const uint64_t base_size = base_->size_bytes();
  return offset >= base_size || base_->is_hole(offset, std::min(end, base_size) - offset);
}

void OverlayStore::register_buffer(std::span<std::byte> buffer) {
  base_->register_buffer(buffer);
  scratch_->register_buffer(buffer);
}

StoreTraits OverlayStore::traits() const {
  const StoreTraits under = base_->traits();
  const StoreTraits over = scratch_->traits();
  StoreTraits traits;
  traits.is_fault_safe = under.is_fault_safe && over.is_fault_safe;
  traits.alignment_bytes = std::max(under.alignment_bytes, over.alignment_bytes);
  traits.read_concurrency = smaller_limit(under.read_concurrency, over.read_concurrency);
  traits.write_concurrency = over.write_concurrency;
  traits.is_volatile = true;
  traits.has_many_in_flight = under.has_many_in_flight && over.has_many_in_flight;
  return traits;
}

}  // namespace outcore::store
