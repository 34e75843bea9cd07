// AnonymousMemory: memory in which data is laid out before it is written to a file; given back as a
// whole. It reads zero at first.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace outcore::bench {

class AnonymousMemory {
 public:
  // At `address`, or anywhere if it is nullptr. Where that fails, bytes() is empty.
  AnonymousMemory(std::byte* address, uint64_t size_bytes) : size_bytes_(size_bytes) {
    const int fixed = address == nullptr ? 0 : MAP_FIXED_NOREPLACE;
    void* const got = ::mmap(address, size_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, off_t{0});
    if (got == MAP_FAILED) return;
    // A kernel that does not know the flag takes the address for a hint.
    if (address == nullptr || got == address)
      bytes_ = static_cast<std::byte*>(got);
    else
      ::munmap(got, size_bytes);
  }
  ~AnonymousMemory() {
    if (bytes_ != nullptr) ::munmap(bytes_, size_bytes_);
  }
  AnonymousMemory(const AnonymousMemory&) = delete;
  AnonymousMemory& operator=(const AnonymousMemory&) = delete;

  std::span<std::byte> bytes() const { return {bytes_, bytes_ == nullptr ? 0 : size_bytes_}; }

 private:
  std::byte* bytes_ = nullptr;
  uint64_t size_bytes_;
};

}  // namespace outcore::bench
