#include "heaps/volatile/slabs.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "core/base/assert.h"

namespace outcore::heap {
namespace {

uint32_t words_of(const SizeClass& size) { return (size.block_count + 63) / 64; }

}  // namespace

void Slabs::list(Bin& bin, Span* span) {
  span->prev = nullptr;
  span->next = bin.with_room;
  if (span->next != nullptr) span->next->prev = span;
  bin.with_room = span;
}

void Slabs::unlist(Bin& bin, Span* span) {
  if (span->next != nullptr) span->next->prev = span->prev;
  (span->prev != nullptr ? span->prev->next : bin.with_room) = span->next;
}

Span* Slabs::make(uint8_t size_class, int* error) {
  const SizeClass& size = kSizes[size_class];
  const size_t bits_bytes = words_of(size) * sizeof(uint64_t);
  auto* const bits = static_cast<uint64_t*>(metadata_.allocate(bits_bytes));
  if (bits == nullptr) return *error = -ENOMEM, nullptr;
  Span* span = nullptr;
  bool is_zero = false;
  if (*error = extents_.allocate({size.slab_units, 1, false, SpanKind::kSlab}, &span, &is_zero);
      *error != 0) {
    metadata_.free(bits, bits_bytes);
    return nullptr;
  }
  for (uint32_t i = 0; i < size.block_count / 64; ++i) bits[i] = UINT64_MAX;
  if (const uint32_t rest = size.block_count % 64; rest != 0)
    bits[size.block_count / 64] = (uint64_t{1} << rest) - 1;
  span->size_class = size_class;
  span->free_count = span->block_count = size.block_count;
  span->hint = 0;
  span->free_bits = bits;
  extents_.mark_all(span, size_class);
  if (is_zero) memory_.expect(span->first * kUnitBytes, span->size_bytes());
  return span;
}

void Slabs::end(Span* span) {
  metadata_.free(span->free_bits, words_of(kSizes[span->size_class]) * sizeof(uint64_t));
  span->free_bits = nullptr;
  span->size_class = 0;
  extents_.mark_all(span, 0);  // so that a dangling pointer finds no class
  extents_.free(span);
}

// The lowest blocks first, so that blocks in use lie together.
size_t Slabs::allocate_from(Span* span, std::byte** blocks, size_t count) const {
  const SizeClass& size = kSizes[span->size_class];
  std::byte* const first = extents_.address_of(*span);
  size_t taken = 0;
  uint32_t word = span->hint;
  while (taken < count && span->free_count > 0) {
    uint64_t& bits = span->free_bits[word];
    for (; bits != 0 && taken < count; bits &= bits - 1, --span->free_count) {
      const auto bit = static_cast<uint32_t>(std::countr_zero(bits));
      blocks[taken++] = first + (uint64_t{word} * 64 + bit) * size.block_bytes;
    }
    if (bits == 0) ++word;
  }
  span->hint = word;
  return taken;
}

size_t Slabs::allocate(uint8_t size_class, std::span<std::byte*> blocks, int* error) {
  Bin& bin = bins_[size_class];
  std::unique_lock<std::mutex> lock(bin.mutex);
  size_t taken = 0;
  for (;;) {
    while (taken < blocks.size()) {
      if (bin.with_room == nullptr && bin.empty != nullptr) {
        list(bin, bin.empty);
        bin.empty = nullptr;
      }
      Span* const span = bin.with_room;
      if (span == nullptr) break;
      taken += allocate_from(span, blocks.data() + taken, blocks.size() - taken);
      if (span->free_count == 0) unlist(bin, span);
    }
    if (taken > 0) return taken;
    lock.unlock();
    Span* const made = make(size_class, error);
    if (made == nullptr) return 0;
    lock.lock();
    list(bin, made);
  }
}

void Slabs::free_one(Bin& bin, uint8_t size_class, std::byte* block, Span** gone) {
  const SizeClass& size = kSizes[size_class];
  const auto offset = static_cast<uint64_t>(block - memory_.base());
  Span* const span = Extents::span_of(extents_.find(offset / kUnitBytes));
  const uint64_t within = offset - span->first * kUnitBytes;
  const uint64_t index = within * size.inverse >> 32, bit = uint64_t{1} << index % 64;
  OC_CHECK(span->size_class == size_class);
  OC_CHECK(index * size.block_bytes == within && index < span->block_count);  // a block's beginning
  OC_CHECK((span->free_bits[index / 64] & bit) == 0);  // it is not free already
  span->free_bits[index / 64] |= bit;
  span->hint = std::min(span->hint, static_cast<uint32_t>(index / 64));
  if (++span->free_count == 1) list(bin, span);
  if (span->free_count < span->block_count) return;
  unlist(bin, span);
  if (bin.empty != nullptr) {
    bin.empty->next = *gone;
    *gone = bin.empty;
  }
  bin.empty = span;
}

void Slabs::free(uint8_t size_class, std::span<std::byte* const> blocks) {
  Bin& bin = bins_[size_class];
  Span* gone = nullptr;
  {
    const std::lock_guard<std::mutex> guard(bin.mutex);
    for (std::byte* block : blocks) free_one(bin, size_class, block, &gone);
  }
  while (gone != nullptr) {
    Span* const next = gone->next;
    end(gone);
    gone = next;
  }
}

void Slabs::release_empty() {
  for (Bin& bin : bins_) {
    Span* empty = nullptr;
    {
      const std::lock_guard<std::mutex> guard(bin.mutex);
      std::swap(empty, bin.empty);
    }
    if (empty != nullptr) end(empty);
  }
}

}  // namespace outcore::heap
