// Steps on allocated memory, which --alloc may have put into Outcore.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "own.h"
#include "steps.h"

namespace storm {

namespace {

Block* pick_block() {
  Block* all[kBlocksMax];
  unsigned count = 0;
  for (Block& b : own.blocks)
    if (b.bytes != nullptr) all[count++] = &b;
  return count > 0 ? all[random.below(count)] : nullptr;
}

unsigned index_of(const Block& b) { return static_cast<unsigned>(&b - own.blocks); }

uint64_t pick_size() { return 32 * 1024 + random.below(kBlockBytesMax - 32 * 1024); }

void write_block(Block& b, uint64_t offset, uint64_t count) {
  random.fill(b.model + offset, count);
  std::memcpy(b.bytes + offset, b.model + offset, count);
}

}  // namespace

void step_allocate() {
  Block* b = nullptr;
  for (Block& other : own.blocks)
    if (other.bytes == nullptr) b = &other;
  if (b == nullptr) return step_free();
  if (b->model == nullptr) b->model = allocate_raw(kBlockBytesMax + kPageBytes);
  b->count = pick_size();
  const bool is_zeroed = random.chance(50);
  say(" b%u of %lu bytes%s", index_of(*b), b->count, is_zeroed ? " zeroed" : "");
  b->bytes = static_cast<uint8_t*>(is_zeroed ? std::calloc(b->count, 1) : std::malloc(b->count));
  if (b->bytes == nullptr) mismatch("malloc of %lu: errno %d", b->count, errno);
  std::memset(b->model, 0, b->count);
  if (!is_zeroed) write_block(*b, 0, b->count);
}

void step_resize_block() {
  Block* b = pick_block();
  if (b == nullptr) return say(" nothing");
  const uint64_t was = b->count;
  b->count = pick_size();
  say(" b%u from %lu to %lu", index_of(*b), was, b->count);
  b->bytes = static_cast<uint8_t*>(std::realloc(b->bytes, b->count));
  if (b->bytes == nullptr) mismatch("realloc: errno %d", errno);
  check_bytes(b->bytes, b->model, was < b->count ? was : b->count, "block b", index_of(*b), 0);
  if (b->count > was) write_block(*b, was, b->count - was);
}

void step_free() {
  Block* b = pick_block();
  if (b == nullptr) return say(" nothing");
  say(" b%u", index_of(*b));
  check_bytes(b->bytes, b->model, b->count, "block b", index_of(*b), 0);
  std::free(b->bytes);
  b->bytes = nullptr;
}

void step_write_block() {
  Block* b = pick_block();
  if (b == nullptr) return step_allocate();
  const uint64_t offset = random.below(b->count);
  const uint64_t count = random.size(b->count - offset);
  say(" b%u at %lu bytes %lu", index_of(*b), offset, count);
  write_block(*b, offset, count);
}

void step_file_to_block() {
  Block* b = pick_block();
  Descriptor* d = pick_descriptor(true, false);
  if (b == nullptr || d == nullptr) return say(" nothing");
  const uint64_t size = stage->file[d->file].size;
  const uint64_t at = random.below(size + 1);
  const uint64_t offset = random.below(b->count);
  const uint64_t count = random.size(b->count - offset);
  const uint64_t expected = count < size - at ? count : size - at;
  say(" f%u at %lu to b%u at %lu", d->file, at, index_of(*b), offset);
  answer(outcome(::pread(d->number, b->bytes + offset, count, static_cast<off_t>(at))),
         static_cast<long>(expected));
  std::memcpy(b->model + offset, bytes_of(d->file) + at, expected);
  check_bytes(b->bytes + offset, b->model + offset, expected, "block b", index_of(*b), offset);
}

void step_block_to_file() {
  Block* b = pick_block();
  Descriptor* d = pick_descriptor(false, true);
  if (b == nullptr || d == nullptr) return say(" nothing");
  const uint64_t size = stage->file[d->file].size;
  const uint64_t at = d->is_appending ? size : random.below(size + 1);
  const uint64_t offset = random.below(b->count);
  uint64_t count = random.size(b->count - offset);
  if (count > kFileBytesMax - at) count = kFileBytesMax - at;
  if (count == 0) return say(" not done");
  say(" b%u at %lu to f%u at %lu", index_of(*b), offset, d->file, at);
  answer(outcome(::pwrite(d->number, b->bytes + offset, count, static_cast<off_t>(at))),
         static_cast<long>(count));
  write_model(d->file, at, b->model + offset, count);
}

}  // namespace storm
