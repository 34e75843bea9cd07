// ChunkBuffers: a few buffers of the size of a chunk, for writes of parts of chunks. Any thread,
// the fault path: nothing is allocated after open(), and a thread that finds no free buffer waits
// for one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace outcore::versioned {

class ChunkBuffers {
 public:
  static constexpr uint32_t kCount = 32;

  ChunkBuffers() = default;
  ~ChunkBuffers();
  ChunkBuffers(const ChunkBuffers&) = delete;
  ChunkBuffers& operator=(const ChunkBuffers&) = delete;

  // False: no memory.
  bool open(uint32_t chunk_bytes);
  std::span<std::byte> acquire();
  void release(std::span<std::byte> buffer);

 private:
  std::byte* memory_ = nullptr;
  uint32_t chunk_bytes_ = 0;
  std::atomic<uint32_t> free_{UINT32_MAX};  // a bit for each free buffer
};

// A buffer for a scope.
class ChunkBuffer {
 public:
  explicit ChunkBuffer(ChunkBuffers& all) : all_(all), bytes_(all.acquire()) {}
  ~ChunkBuffer() { all_.release(bytes_); }
  ChunkBuffer(const ChunkBuffer&) = delete;
  ChunkBuffer& operator=(const ChunkBuffer&) = delete;
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  ChunkBuffers& all_;
  std::span<std::byte> bytes_;
};

}  // namespace outcore::versioned
