#include "heaps/volatile/plain_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "heaps/volatile/metadata.h"

namespace outcore::heap {

std::unique_ptr<PlainMemory> PlainMemory::make(uint64_t reserve_bytes) {
  void* const memory = Metadata::map(reserve_bytes);
  if (memory == nullptr) return nullptr;
  std::unique_ptr<PlainMemory> heap_memory(new PlainMemory);
  heap_memory->base_ = static_cast<std::byte*>(memory);
  heap_memory->capacity_bytes_ = reserve_bytes;
  return heap_memory;
}

PlainMemory::~PlainMemory() { Metadata::unmap(base_, capacity_bytes_); }

int PlainMemory::give_back(uint64_t offset, uint64_t size_bytes) {
  return ::madvise(base_ + offset, size_bytes, MADV_DONTNEED) == 0 ? 0 : -errno;
}

void PlainMemory::zero(uint64_t offset, uint64_t size_bytes) {
  // Memory that is locked (mlockall) cannot be given back.
  if (give_back(offset, size_bytes) != 0) std::memset(base_ + offset, 0, size_bytes);
}

}  // namespace outcore::heap
