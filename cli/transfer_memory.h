// TransferMemory: memory for transfers of some MiB, by the commands and the benchmarks' rivals. On
// huge pages where the system gives any: a device takes a transfer into small pages in as many
// parts as pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace outcore::cli {

class TransferMemory {
 public:
  TransferMemory() = default;
  // Touched, and filled with `value`; aligned for O_DIRECT. No memory: data() is nullptr.
  // REQUIRES: size_bytes != 0.
  explicit TransferMemory(uint64_t size_bytes, int value = 0) {
    const uint64_t whole = (size_bytes + kHugePage - 1) / kHugePage * kHugePage;
    bytes_.reset(static_cast<std::byte*>(std::aligned_alloc(kHugePage, whole)));
    if (bytes_ == nullptr) return;
    madvise(bytes_.get(), whole, MADV_HUGEPAGE);  // small pages do as well, and are slower
    std::memset(bytes_.get(), value, size_bytes);
  }
  std::byte* data() const { return bytes_.get(); }

 private:
  static constexpr uint64_t kHugePage = 2 << 20;
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
};

}  // namespace outcore::cli
