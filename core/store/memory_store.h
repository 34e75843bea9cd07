// MemoryStore: bytes in anonymous memory, outside of any budget; for tests. Fault safe. The bytes
// are lost when the process ends.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/store/written_map.h"
#include "outcore/store.h"

namespace outcore::store {

struct MemoryStoreOptions {
  uint64_t size_bytes = 0;
  unsigned read_concurrency = 0;
  unsigned write_concurrency = 0;
};

class MemoryStore final : public Store {
 public:
  // Errors: ENOMEM (address space).
  static Result<std::shared_ptr<Store>> open(const MemoryStoreOptions& options);
  ~MemoryStore() override;

  uint64_t size_bytes() const override { return size_bytes_.load(std::memory_order_acquire); }
  int read(uint64_t offset, std::span<std::byte> into) override;
  int write(uint64_t offset, std::span<const std::byte> from) override;
  // -ENOMEM beyond its reservation: 16 GiB, or twice the first size.
  int resize(uint64_t size_bytes) override;
  int discard(uint64_t offset, uint64_t size_bytes) override;
  int release(uint64_t offset, uint64_t size_bytes) override { return discard(offset, size_bytes); }
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override;
  StoreTraits traits() const override { return traits_; }
  std::string uri() const override { return "memory:"; }

 private:
  MemoryStore() = default;
  Status make_room(uint64_t size_bytes);

  std::byte* bytes_ = nullptr;  // reserved; accessible up to the size, rounded up to system pages
  uint64_t reserved_bytes_ = 0;
  WrittenMap written_;
  StoreTraits traits_;
  std::atomic<uint64_t> size_bytes_{0};
};

}  // namespace outcore::store
