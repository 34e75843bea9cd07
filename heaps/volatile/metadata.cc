#include "heaps/volatile/metadata.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "core/base/assert.h"

namespace outcore::heap {

void* Metadata::map(uint64_t size_bytes) {
  void* memory = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void Metadata::unmap(void* memory, uint64_t size_bytes) {
  if (memory != nullptr) ::munmap(memory, size_bytes);
}

Metadata::~Metadata() {
  while (chunks_ != nullptr) {
    Chunk* next = chunks_->next;
    unmap(chunks_, kChunkBytes);
    chunks_ = next;
  }
}

void* Metadata::allocate(size_t size_bytes) {
  OC_CHECK(size_bytes > 0 && size_bytes <= kPieceBytesMax);
  const size_t units = (size_bytes + kUnitBytes - 1) / kUnitBytes, bytes = units * kUnitBytes;
  void* piece = nullptr;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (Free* const first = free_[units]; first != nullptr) {
      free_[units] = first->next;
      piece = first;
    } else {
      if (static_cast<size_t>(end_ - at_) < bytes) {
        void* const memory = map(kChunkBytes);
        if (memory == nullptr) return nullptr;
        chunks_ = new (memory) Chunk{chunks_};
        at_ = static_cast<std::byte*>(memory) + kUnitBytes;
        end_ = static_cast<std::byte*>(memory) + kChunkBytes;
        bytes_.fetch_add(kChunkBytes, std::memory_order_relaxed);
      }
      piece = at_;
      at_ += bytes;
    }
  }
  return std::memset(piece, 0, bytes);
}

void Metadata::free(void* piece, size_t size_bytes) {
  if (piece == nullptr) return;
  const size_t units = (size_bytes + kUnitBytes - 1) / kUnitBytes;
  OC_CHECK(size_bytes > 0 && size_bytes <= kPieceBytesMax);
  const std::lock_guard<std::mutex> guard(mutex_);
  free_[units] = new (piece) Free{free_[units]};
}

}  // namespace outcore::heap
