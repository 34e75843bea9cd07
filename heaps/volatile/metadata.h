// Metadata: memory for what a heap knows about its blocks: ordinary memory, straight from the
// kernel.
//
// It is neither the heap's own, where looking at it could fault, nor the program's malloc, which
// may be the heap. Any thread. What is given back is used again, and unmapped only when all of it
// ends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace outcore::heap {

class Metadata {
 public:
  static constexpr size_t kPieceBytesMax = 1024;

  Metadata() = default;
  ~Metadata();
  Metadata(const Metadata&) = delete;
  Metadata& operator=(const Metadata&) = delete;

  // Zeroed; nullptr: no memory. REQUIRES: size_bytes <= kPieceBytesMax; the same size at free().
  void* allocate(size_t size_bytes);
  void free(void* piece, size_t size_bytes);
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  // Zeroed memory that costs nothing untouched; nullptr: there are no addresses.
  static void* map(uint64_t size_bytes);
  static void unmap(void* memory, uint64_t size_bytes);

 private:
  static constexpr size_t kUnitBytes = 64;  // a cache line: pieces of two threads share none
  static constexpr size_t kChunkBytes = size_t{256} << 10;
  struct Free {
    Free* next;
  };
  struct Chunk {
    Chunk* next;
  };

  std::mutex mutex_;
  std::array<Free*, kPieceBytesMax / kUnitBytes + 1> free_{};
  Chunk* chunks_ = nullptr;
  std::byte* at_ = nullptr;
  std::byte* end_ = nullptr;
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace outcore::heap
