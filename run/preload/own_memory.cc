#include "run/preload/own_memory.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <optional>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "run/preload/inside.h"
#include "run/preload/own_slots.h"

namespace outcore::preload {
namespace {

using base::round_up;

// Lies before each block. `start` is where its memory begins: an alignment may leave a gap there.
struct Header {
  uint32_t mark;
  uint32_t class_index;  // kLarge: a mapping of its own
  std::byte* start;
};
static_assert(sizeof(Header) == 16);

constexpr uint32_t kHeaderMark = 0x6f7574u, kLarge = ~0u;
constexpr size_t kBytesMin = 32, kChunkBytes = 256 << 10, kRoomBytes = 128 << 10;
// Sizes with their headers: 32, 48, 64, 96, 128 … up to kChunkBytes.
constexpr uint32_t kClasses = 27;

constexpr size_t bytes_of(uint32_t index) {
  const size_t base = kBytesMin << (index / 2);
  return index % 2 == 0 ? base : base + base / 2;
}
static_assert(bytes_of(kClasses - 1) == kChunkBytes);

uint32_t class_of(size_t bytes) {
  if (bytes <= kBytesMin) return 0;
  const auto power = static_cast<uint32_t>(std::bit_width(bytes - 1) - 1);  // 2^power < bytes
  const size_t base = size_t{1} << power;
  const uint32_t index = 2 * (power - 5);
  return bytes <= base + base / 2 ? index + 1 : index + 2;
}

struct Chunk {
  std::byte* at = nullptr;
  std::byte* end = nullptr;
  size_t room() const { return static_cast<size_t>(end - at); }
};

alignas(4096) constinit std::byte reserve_memory[OwnMemory::kReserveBytes] = {};

// All of it is guarded by `lock`.
struct Heap {
  os::Lock lock;
  std::byte* free[kClasses] = {};  // each block begins with the address of the next
  Chunk current, reserve{reserve_memory, reserve_memory + sizeof reserve_memory};
};
constinit Heap heap;

// Blocks signals while the lock is held, unless this library, inside a call, has blocked them.
class Held {
 public:
  Held() {
    if (!is_inside()) block_.emplace();
    heap.lock.lock();
  }
  ~Held() { heap.lock.unlock(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  std::optional<os::SignalBlock> block_;
};

void push(uint32_t index, std::byte* block) {
  OC_CHECK(index < kClasses && block != nullptr);
  __builtin_memcpy(static_cast<void*>(block), &heap.free[index], sizeof(void*));
  heap.free[index] = block;
}

// Makes what is left of a chunk free blocks of the sizes that fit.
void use_up(Chunk& chunk) {
  while (chunk.room() >= kBytesMin) {
    uint32_t index = class_of(chunk.room());
    if (bytes_of(index) > chunk.room()) --index;
    OC_ASSERT(bytes_of(index) <= chunk.room());
    push(index, chunk.at);
    chunk.at += bytes_of(index);
  }
}

bool add_chunk() {
  std::byte* p = OwnSlots::map(kChunkBytes);
  if (p == nullptr) return false;
  use_up(heap.current);
  heap.current = {p, p + kChunkBytes};
  return true;
}

// Called when the kernel has memory: replaces the reserve if more than half of it is used.
void fill_reserve() {
  if (heap.reserve.room() >= OwnMemory::kReserveBytes / 2) return;
  std::byte* p = OwnSlots::map(OwnMemory::kReserveBytes);
  if (p == nullptr) return;
  use_up(heap.reserve);
  heap.reserve = {p, p + OwnMemory::kReserveBytes};
}

std::byte* take_small(uint32_t index) {
  OC_CHECK(index < kClasses);
  if (std::byte* block = heap.free[index]; block != nullptr) {
    __builtin_memcpy(static_cast<void*>(&heap.free[index]), block, sizeof(void*));
    return block;
  }
  const size_t bytes = bytes_of(index);
  Chunk* from = &heap.current;
  if (from->room() < bytes) {
    if (add_chunk())
      fill_reserve();
    else
      from = &heap.reserve;
  }
  if (from->room() < bytes) return nullptr;
  std::byte* block = from->at;
  from->at += bytes;
  return block;
}

Header* header_of(const void* p) {
  return reinterpret_cast<Header*>(static_cast<std::byte*>(const_cast<void*>(p)) - sizeof(Header));
}

}  // namespace

void* OwnMemory::allocate(size_t bytes, size_t alignment) {
  constexpr size_t kBytesMost = size_t{1} << 46;
  OC_ASSERT((alignment & (alignment - 1)) == 0);
  if (bytes > kBytesMost || alignment > kBytesMost) return errno = ENOMEM, nullptr;
  const int saved_errno = errno;
  const size_t slack = alignment > 16 ? alignment : 0;
  const size_t total = bytes + sizeof(Header) + slack;
  const bool is_large = total > kChunkBytes;
  uint32_t index = kLarge;
  std::byte* start = nullptr;
  if (is_large) {  // the mapping begins with its length
    start = OwnSlots::map(round_up(total + 16, OwnSlots::kBytes));
  } else {
    const Held held;
    start = take_small(index = class_of(total));
  }
  if (start == nullptr) return errno = ENOMEM, nullptr;
  errno = saved_errno;
  if (is_large) {
    const uint64_t length = round_up(total + 16, OwnSlots::kBytes);
    __builtin_memcpy(start, &length, sizeof length);
  }
  const auto first = reinterpret_cast<uintptr_t>(start) + sizeof(Header) + (is_large ? 16 : 0);
  const uintptr_t at = slack == 0 ? first : round_up(first, alignment);
  OC_ASSERT(is_large || at + bytes - reinterpret_cast<uintptr_t>(start) <= bytes_of(index));
  auto* p = start + (at - reinterpret_cast<uintptr_t>(start));
  *header_of(p) = {kHeaderMark, index, start};
  return p;
}

bool OwnMemory::has(const void* p) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  const auto first = reinterpret_cast<uintptr_t>(reserve_memory);
  return at - first < sizeof reserve_memory || OwnSlots::has(p);
}

size_t OwnMemory::usable_bytes(const void* p) {
  OC_ASSERT(has(p));
  const Header* header = header_of(p);
  uint64_t length = 0;
  if (header->class_index == kLarge)
    __builtin_memcpy(&length, header->start, sizeof length);
  else
    length = bytes_of(header->class_index);
  return length - static_cast<size_t>(static_cast<const std::byte*>(p) - header->start);
}

void OwnMemory::release(void* p) {
  const Header header = *header_of(p);
  OC_CHECK(header.mark == kHeaderMark);
  OC_CHECK(header.class_index < kClasses || header.class_index == kLarge);
  header_of(p)->mark = 0;
  if (header.class_index == kLarge) {
    uint64_t length = 0;
    __builtin_memcpy(&length, header.start, sizeof length);
    const int saved_errno = errno;
    OwnSlots::unmap(header.start, length);
    errno = saved_errno;
    return;
  }
  const Held held;
  push(header.class_index, header.start);
}

bool OwnMemory::has_room(size_t bytes) {
  const int saved_errno = errno;
  const Held held;
  const bool has = heap.current.room() >= std::max(bytes, kRoomBytes) ||
                   heap.reserve.room() >= bytes || add_chunk();
  if (has) fill_reserve();
  errno = saved_errno;
  return has;
}

// errno is kept: fork() reports a failure by it, and waiting for the lock would change it.
void OwnMemory::before_fork() {
  const int saved_errno = errno;
  heap.lock.lock();
  errno = saved_errno;
}
void OwnMemory::after_fork() { heap.lock.unlock(); }

}  // namespace outcore::preload
