#include "heaps/persistent/persistent_slabs.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

#include "core/base/assert.h"

namespace outcore::heap::persistent {
namespace {

// A slab without a cell in use. The bits past its last cell are set. nullptr: there is no memory.
Slab* new_slab(uint64_t first_tile, unsigned index) {
  auto* slab = new (std::nothrow) Slab;
  if (slab == nullptr) return nullptr;
  const uint64_t words = slab_words(index);
  slab->words.reset(new (std::nothrow) uint64_t[words]());
  if (slab->words == nullptr) {
    delete slab;
    return nullptr;
  }
  slab->first_tile = first_tile;
  slab->index = index;
  slab->cells = slab->free_cells = slab_cells(index);
  if (slab->cells % 64 != 0) slab->words[words - 1] = ~uint64_t{0} << (slab->cells % 64);
  return slab;
}

}  // namespace

Slabs::~Slabs() {
  for (uint64_t tile = 1, end = tiles_.base() == nullptr ? 0 : tiles_.tile_count(); tile < end;) {
    Slab* slab = tiles_.owner(tile).slab();
    tile += slab == nullptr ? 1 : slab_tiles(slab->index);
    delete slab;
  }
}

void Slabs::list(Size& size, Slab* slab) {
  slab->previous = nullptr;
  slab->next = size.partial;
  if (slab->next != nullptr) slab->next->previous = slab;
  size.partial = slab;
  slab->is_listed = true;
}

void Slabs::unlist(Size& size, Slab* slab) {
  (slab->previous != nullptr ? slab->previous->next : size.partial) = slab->next;
  if (slab->next != nullptr) slab->next->previous = slab->previous;
  slab->is_listed = false;
}

Result<Slab*> Slabs::make(unsigned index) {
  const uint64_t count = slab_tiles(index);
  Result<uint64_t> first = tiles_.allocate(count);
  if (!first) return first.error();
  Slab* slab = new_slab(first.value(), index);
  if (slab == nullptr) {
    tiles_.free(first.value(), count);
    return Error{ENOMEM, "allocate in a persistent heap: no memory for its metadata"};
  }
  tiles_.set_owner(slab->first_tile, count, Owner(slab));
  tiles_.prepare(slab->first_tile, count);
  return slab;
}

Result<unsigned> Slabs::allocate(unsigned index, std::span<void*> cells) {
  Size& size = sizes_[index];
  const std::lock_guard<std::mutex> guard(size.lock);
  if (size.partial == nullptr) {
    Result<Slab*> slab = make(index);
    if (!slab) return slab.error();
    list(size, slab.value());
  }
  const uint64_t bytes = cell_bytes(index), words = slab_words(index);
  size_t left = cells.size();
  while (left > 0 && size.partial != nullptr) {
    Slab* slab = size.partial;
    std::byte* const base = tiles_.base() + slab->first_tile * kTileBytes;
    for (uint64_t word = slab->hint; word < words && left > 0; ++word) {
      slab->hint = static_cast<uint32_t>(word);
      uint64_t& bits = slab->words[word];
      for (; ~bits != 0 && left > 0; --slab->free_cells) {
        const auto bit = static_cast<unsigned>(std::countr_one(bits));
        bits |= uint64_t{1} << bit;
        cells[--left] = base + (word * 64 + bit) * bytes;
      }
    }
    if (slab->free_cells == 0) unlist(size, slab);
  }
  size.cells_in_use += cells.size() - left;
  return static_cast<unsigned>(cells.size() - left);
}

void Slabs::free(unsigned index, std::span<void* const> cells) noexcept {
  Size& size = sizes_[index];
  const uint64_t bytes = cell_bytes(index);
  const std::lock_guard<std::mutex> guard(size.lock);
  for (void* cell : cells) {
    const auto offset = static_cast<uint64_t>(static_cast<std::byte*>(cell) - tiles_.base());
    OC_CHECK(offset / kTileBytes < tiles_.capacity() && "freed what is not of this heap");
    Slab* slab = tiles_.owner(offset / kTileBytes).slab();
    OC_CHECK(slab != nullptr && slab->index == index && "freed with a size that it does not have");
    const uint64_t inside = offset - slab->first_tile * kTileBytes, number = inside / bytes;
    OC_CHECK(inside % bytes == 0 && number < slab->cells && "freed the middle of an object");
    uint64_t& word = slab->words[number / 64];
    const uint64_t bit = uint64_t{1} << (number % 64);
    OC_CHECK((word & bit) != 0 && "freed twice");
    word &= ~bit;
    ++slab->free_cells;
    slab->hint = std::min(slab->hint, static_cast<uint32_t>(number / 64));
    if (!slab->is_listed) list(size, slab);
    // The only slab with free cells is kept even when it is empty, for the next allocations.
    if (slab->free_cells == slab->cells && (slab->previous != nullptr || slab->next != nullptr))
      drop(size, slab);
  }
  size.cells_in_use -= cells.size();
}

void Slabs::drop(Size& size, Slab* slab) noexcept {
  const uint64_t first = slab->first_tile, count = slab_tiles(slab->index);
  unlist(size, slab);
  tiles_.set_owner(first, count, Owner());
  delete slab;
  tiles_.free(first, count);
}

void Slabs::drop_empty() noexcept {
  for (Size& size : sizes_) {
    const std::lock_guard<std::mutex> guard(size.lock);
    for (Slab *slab = size.partial, *next = nullptr; slab != nullptr; slab = next) {
      next = slab->next;
      if (slab->free_cells == slab->cells) drop(size, slab);
    }
  }
}

Status Slabs::add(uint64_t first_tile, unsigned index, const uint64_t* words) {
  Slab* slab = new_slab(first_tile, index);
  if (slab == nullptr) return Error{ENOMEM, "open a persistent heap: no memory for its metadata"};
  const uint64_t count = slab_words(index);
  slab->free_cells = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t past = slab->words[i];
    slab->words[i] = words == nullptr ? ~uint64_t{0} : words[i] | past;
    slab->free_cells += static_cast<uint32_t>(std::popcount(~slab->words[i]));
  }
  Size& size = sizes_[index];
  size.cells_in_use += slab->cells - slab->free_cells;
  if (slab->free_cells != 0) list(size, slab);
  tiles_.set_owner(first_tile, slab_tiles(index), Owner(slab));
  return {};
}

void Slabs::describe(Image* image) const {
  const uint64_t end = tiles_.end();
  for (uint64_t tile = 1; tile < end;) {
    const Owner owner = tiles_.owner(tile);
    if (owner.is_free()) {
      ++tile;
      continue;
    }
    if (const Slab* slab = owner.slab(); slab != nullptr) {
      const uint64_t count = slab_tiles(slab->index);
      const auto bytes = static_cast<uint32_t>(cell_bytes(slab->index));
      Run* last = image->runs.empty() ? nullptr : &image->runs.back();
      if (slab->free_cells != 0) {
        image->runs.push_back(
            {tile, count, static_cast<uint32_t>(RunKind::kPartial), bytes, image->words.size()});
        const uint64_t words = slab_words(slab->index);
        image->words.insert(image->words.end(), slab->words.get(), slab->words.get() + words);
        if (slab->cells % 64 != 0) image->words.back() &= ~(~uint64_t{0} << (slab->cells % 64));
      } else if (last != nullptr && last->kind == static_cast<uint32_t>(RunKind::kFull) &&
                 last->cell_bytes == bytes && last->first_tile + last->tile_count == tile) {
        last->tile_count += count;
      } else {
        image->runs.push_back({tile, count, static_cast<uint32_t>(RunKind::kFull), bytes, 0});
      }
      tile += count;
      continue;
    }
    const bool is_large = owner.kind() == Owner::Kind::kLarge;
    OC_CHECK(is_large || owner.kind() == Owner::Kind::kMetadata);
    const uint64_t count = std::max<uint64_t>((owner.bytes() + kTileBytes - 1) / kTileBytes, 1);
    const RunKind kind = is_large ? RunKind::kLarge : RunKind::kMetadata;
    image->runs.push_back({tile, count, static_cast<uint32_t>(kind), 0, owner.bytes()});
    tile += count;
  }
}

uint64_t Slabs::bytes_in_use() const {
  uint64_t bytes = 0;
  for (unsigned index = 0; index < kCellSizes; ++index) {
    const std::lock_guard<std::mutex> guard(sizes_[index].lock);
    bytes += sizes_[index].cells_in_use * cell_bytes(index);
  }
  return bytes;
}

}  // namespace outcore::heap::persistent
