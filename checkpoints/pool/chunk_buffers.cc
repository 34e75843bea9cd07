#include "checkpoints/pool/chunk_buffers.h"

#include <sys/mman.h>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::versioned {

static_assert(ChunkBuffers::kCount == 32);  // one bit each in a word

ChunkBuffers::~ChunkBuffers() {
  if (memory_ != nullptr) ::munmap(memory_, size_t{chunk_bytes_} * kCount);
}

bool ChunkBuffers::open(uint32_t chunk_bytes) {
  OC_CHECK(memory_ == nullptr && chunk_bytes != 0);
  void* const got = ::mmap(nullptr, size_t{chunk_bytes} * kCount, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) return false;
  memory_ = static_cast<std::byte*>(got);
  chunk_bytes_ = chunk_bytes;
  return true;
}

std::span<std::byte> ChunkBuffers::acquire() {
  OC_CHECK(memory_ != nullptr);
  constexpr uint64_t kWaitNs = 10'000'000;  // then it looks again
  while (true) {
    uint32_t free = free_.load();
    if (free == 0) {
      os::wait(&free_, 0, kWaitNs);
      continue;
    }
    const auto index = static_cast<uint32_t>(__builtin_ctz(free));
    if (free_.compare_exchange_weak(free, free & ~(1u << index)))
      return {memory_ + size_t{index} * chunk_bytes_, chunk_bytes_};
  }
}

void ChunkBuffers::release(std::span<std::byte> buffer) {
  const auto index = static_cast<uint32_t>((buffer.data() - memory_) / chunk_bytes_);
  OC_CHECK(index < kCount && buffer.size() == chunk_bytes_);
  OC_CHECK((free_.load() & 1u << index) == 0);
  if (free_.fetch_or(1u << index) == 0) os::wake_all(&free_);
}

}  // namespace outcore::versioned
