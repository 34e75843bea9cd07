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
  explicit TransferMemory(uint64_t size_bytes, int value = 0)
      : mapped_bytes_(up_to_huge_page(size_bytes) + kHugePage) {
    void* const got =
        ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) return;
    mapped_ = got;
    bytes_ = reinterpret_cast<std::byte*>(up_to_huge_page(reinterpret_cast<uintptr_t>(got)));
    // Small pages do as well, and are slower.
    ::madvise(bytes_, mapped_bytes_ - kHugePage, MADV_HUGEPAGE);
    std::memset(bytes_, value, size_bytes);
  }
  TransferMemory(TransferMemory&& other) noexcept { *this = std::move(other); }
  TransferMemory& operator=(TransferMemory&& other) noexcept {
    std::swap(mapped_, other.mapped_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~TransferMemory() {
    if (mapped_ != nullptr) ::munmap(mapped_, mapped_bytes_);
  }
  std::byte* data() const { return bytes_; }

 private:
  static constexpr uint64_t kHugePage = 2 << 20;
  static uint64_t up_to_huge_page(uint64_t n) {
    return (n + kHugePage - 1) / kHugePage * kHugePage;
  }

  void* mapped_ = nullptr;
  uint64_t mapped_bytes_ = 0;
  std::byte* bytes_ = nullptr;  // in it, from the first huge page on
};

}  // namespace outcore::cli
