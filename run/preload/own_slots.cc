#include "run/preload/own_slots.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "core/base/assert.h"

namespace outcore::preload {
namespace {

// A bit for each slot of the 2^47 bytes that programs get, in pieces that are mapped when a slot of
// theirs is, and then stay.
constexpr uint64_t kSlotsOfPiece = 1 << 16, kPieces = (uint64_t{1} << 47) / OwnSlots::kBytes >> 16;

struct Piece {
  std::atomic<uint64_t> words[kSlotsOfPiece / 64];
};
constinit std::atomic<Piece*> pieces[kPieces] = {};

uint64_t slot_of(const void* p) { return reinterpret_cast<uint64_t>(p) / OwnSlots::kBytes; }

// The system calls are made directly, because the functions may not have been looked up yet.
std::byte* map_bytes(size_t bytes) {
  const long p = ::syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == -1 ? nullptr : reinterpret_cast<std::byte*>(p);
}
void unmap_bytes(std::byte* p, size_t bytes) {
  if (bytes != 0) ::syscall(SYS_munmap, p, bytes);
}

size_t past_slot(const std::byte* p) { return reinterpret_cast<uint64_t>(p) % OwnSlots::kBytes; }

// Mostly the kernel maps below what it has mapped before, and that is a slot.
std::byte* map_slots(size_t bytes) {
  std::byte* p = map_bytes(bytes);
  if (p == nullptr || past_slot(p) == 0) return p;
  unmap_bytes(p, bytes);
  p = map_bytes(bytes + OwnSlots::kBytes);
  if (p == nullptr) return nullptr;
  const size_t before = (OwnSlots::kBytes - past_slot(p)) % OwnSlots::kBytes;
  unmap_bytes(p, before);
  unmap_bytes(p + before + bytes, OwnSlots::kBytes - before);
  return p + before;
}

Piece* piece_of(uint64_t slot) {
  if (slot / kSlotsOfPiece >= kPieces) return nullptr;
  std::atomic<Piece*>& place = pieces[slot / kSlotsOfPiece];
  Piece* there = place.load(std::memory_order_acquire);
  if (there != nullptr) return there;
  auto* const made = reinterpret_cast<Piece*>(map_bytes(sizeof(Piece)));
  if (made == nullptr) return nullptr;
  if (place.compare_exchange_strong(there, made)) return made;
  unmap_bytes(reinterpret_cast<std::byte*>(made), sizeof(Piece));
  return there;
}

std::atomic<uint64_t>& word_of(Piece& piece, uint64_t slot) {
  return piece.words[slot % kSlotsOfPiece / 64];
}

void mark(uint64_t slot, bool is_ours) {
  std::atomic<uint64_t>& word = word_of(*pieces[slot / kSlotsOfPiece].load(), slot);
  const uint64_t bit = uint64_t{1} << slot % 64;
  if (is_ours)
    word.fetch_or(bit);
  else
    word.fetch_and(~bit);
}

}  // namespace

std::byte* OwnSlots::map(size_t bytes) {
  OC_ASSERT(bytes != 0 && bytes % kBytes == 0);
  std::byte* const p = map_slots(bytes);
  if (p == nullptr) return nullptr;
  const uint64_t first = slot_of(p), end = first + bytes / kBytes;
  bool has_pieces = true;
  for (uint64_t slot = first; slot < end; slot = (slot / kSlotsOfPiece + 1) * kSlotsOfPiece)
    has_pieces = has_pieces && piece_of(slot) != nullptr;
  if (!has_pieces) {
    unmap_bytes(p, bytes);
    return errno = ENOMEM, nullptr;
  }
  for (uint64_t slot = first; slot < end; ++slot) mark(slot, true);
  return p;
}

void OwnSlots::unmap(std::byte* p, size_t bytes) {
  OC_ASSERT(bytes % kBytes == 0 && has(p));
  for (uint64_t slot = slot_of(p), end = slot + bytes / kBytes; slot < end; ++slot)
    mark(slot, false);
  unmap_bytes(p, bytes);
}

bool OwnSlots::has(const void* p) {
  const uint64_t slot = slot_of(p);
  if (slot / kSlotsOfPiece >= kPieces) return false;
  Piece* const piece = pieces[slot / kSlotsOfPiece].load(std::memory_order_acquire);
  return piece != nullptr && (word_of(*piece, slot).load() >> slot % 64 & 1) != 0;
}

}  // namespace outcore::preload
