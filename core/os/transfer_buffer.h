// TransferBuffer: memory for transfers of some MiB that are not the pager's own, such as copies and
// restarts. On huge pages (allocate_buffers), aligned for O_DIRECT. One owner; freed with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/address_space.h"

namespace outcore::os {

class TransferBuffer {
 public:
  TransferBuffer() = default;
  TransferBuffer(const TransferBuffer&) = delete;
  TransferBuffer& operator=(const TransferBuffer&) = delete;
  ~TransferBuffer() {
    if (!bytes_.empty()) free_table(bytes_.data(), bytes_.size());
  }

  // Zeroed bytes, which take memory when they are touched; from 64 KiB to 2 MiB at once. Fails
  // with ENOMEM if there are no addresses. REQUIRES: size_bytes != 0; called once, before use.
  Status allocate(uint64_t size_bytes) {
    OC_CHECK(size_bytes != 0);
    OC_CHECK(bytes_.empty());
    Result<std::byte*> memory = allocate_buffers(size_bytes);
    if (!memory) return memory.error();
    bytes_ = {memory.value(), size_bytes};
    return {};
  }

  std::byte* data() const { return bytes_.data(); }
  std::span<std::byte> bytes() const { return bytes_; }
  std::span<std::byte> first(uint64_t count) const {
    OC_CHECK(count <= bytes_.size());
    return bytes_.first(count);
  }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace outcore::os
