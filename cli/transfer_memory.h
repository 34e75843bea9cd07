// TransferMemory: memory for transfers of some MiB, by the commands and the benchmarks' rivals. On
// huge pages where the system gives any: a device takes a transfer into small pages in as many
// parts as pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace outcore::cli {

class TransferMemory {
 public:
  TransferMemory() = default;
  // Touched, and filled with `value`; aligned for O_DIRECT. No memory: data() is nullptr.
  // REQUIRES: size_bytes != 0.
  explicit TransferMemory(uint64_t size_bytes, int value = 0) {
    // Room to begin on a huge page.
    size_bytes_ = (size_bytes + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
    void* const got = ::mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) return;
    mapped_ = static_cast<std::byte*>(got);
    const uint64_t behind = reinterpret_cast<uintptr_t>(mapped_) % kHugePage;
    bytes_ = mapped_ + (behind == 0 ? 0 : kHugePage - behind);
    ::madvise(bytes_, size_bytes_ - kHugePage, MADV_HUGEPAGE);  // small pages do, and are slower
    std::memset(bytes_, value, size_bytes);
  }
  TransferMemory(TransferMemory&& other) noexcept { *this = std::move(other); }
  TransferMemory& operator=(TransferMemory&& other) noexcept {
    std::swap(mapped_, other.mapped_);
    std::swap(bytes_, other.bytes_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }
  ~TransferMemory() {
    if (mapped_ != nullptr) ::munmap(mapped_, size_bytes_);
  }
  std::byte* data() const { return bytes_; }

 private:
  static constexpr uint64_t kHugePage = 2 << 20;

  std::byte* mapped_ = nullptr;
  std::byte* bytes_ = nullptr;
  uint64_t size_bytes_ = 0;
};

}  // namespace outcore::cli
