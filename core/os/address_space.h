// AddressSpace: reserves and releases ranges of addresses, and allocates tables whose memory is
// used only where it is touched. Any thread; not on the fault path, unless a function says so.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/assert.h"
#include "outcore/result.h"

namespace outcore::os {

// Reserves inaccessible addresses, aligned to `alignment` (a power of two ≥ 4096). No other mapping
// gets them until release_addresses().
Result<std::byte*> reserve_addresses(uint64_t size_bytes, uint64_t alignment);
// The same at `address`, a multiple of 4096. Error: EEXIST (something is mapped there).
Result<std::byte*> reserve_addresses_at(void* address, uint64_t size_bytes);
void release_addresses(std::byte* address, uint64_t size_bytes);
// Makes the range inaccessible again, in one step, so that no other thread can get the addresses in
// between. 0 or -errno.
int make_inaccessible(std::byte* address, uint64_t size_bytes);

// Zeroed memory for a table. Its pages take memory when they are touched; they are not in core
// dumps, and no huge pages are used (a touched word must cost one page, not 512). A forked child
// shares it copy-on-write.
Result<std::byte*> allocate_table(uint64_t size_bytes);
void free_table(std::byte* table, uint64_t size_bytes);
// The same for buffers of transfers, which are used as a whole: on huge pages as far as the size
// has room for them, where the system gives any. From 64 KiB on less than one is a part of a huge
// page: it is touched at once, and needs 2 MiB for a moment. A device takes a transfer in as many
// parts as its memory has, and each part costs: reads of 128 KiB were three times as fast on a
// virtio disk. Freed as a table.
Result<std::byte*> allocate_buffers(uint64_t size_bytes);
// Bytes of the table that have been touched. Walks the whole range: for metrics only.
uint64_t touched_bytes(const std::byte* table, uint64_t size_bytes);

// Table<T>: an array of `count` elements in such memory. The owner frees it.
template <typename T>
class Table {
 public:
  Table() = default;
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() {
    if (data_ != nullptr) free_table(reinterpret_cast<std::byte*>(data_), count_ * sizeof(T));
  }
  // Elements are zero bytes. REQUIRES: called once, before use.
  Status allocate(uint64_t count) {
    OC_CHECK(data_ == nullptr);
    OC_CHECK(count <= UINT64_MAX / sizeof(T));
    Result<std::byte*> memory = allocate_table(count * sizeof(T));
    if (!memory) return memory.error();
    data_ = reinterpret_cast<T*>(memory.value());
    count_ = count;
    return {};
  }
  T& operator[](uint64_t i) {
    OC_ASSERT(i < count_);
    return data_[i];
  }
  const T& operator[](uint64_t i) const {
    OC_ASSERT(i < count_);
    return data_[i];
  }
  uint64_t count() const { return count_; }
  uint64_t touched() const {
    return data_ == nullptr
               ? 0
               : touched_bytes(reinterpret_cast<const std::byte*>(data_), count_ * sizeof(T));
  }

 private:
  T* data_ = nullptr;
  uint64_t count_ = 0;
};

}  // namespace outcore::os
