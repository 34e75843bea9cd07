// HeapMemoryStore: the store under a heap: a decorator of another store. It notes which pages were
// written, so that fresh and freed memory reads zero without I/O, whatever the other store holds
// there.
//
// Fault safe if the other store is. Once the heap has ended, writes are dropped: nobody will read
// them.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/store/room.h"
#include "core/store/written_map.h"
#include "outcore/store.h"

namespace outcore::heap {

class HeapMemoryStore final : public Store, public store::Lodger {
 public:
  // Shows the first `size_bytes`. nullptr: no memory for the map.
  static std::shared_ptr<HeapMemoryStore> make(std::shared_ptr<Store> inner, uint64_t size_bytes,
                                               uint64_t capacity_bytes);
  void end() { is_ended_.store(true, std::memory_order_relaxed); }

  uint64_t size_bytes() const override { return size_bytes_.load(std::memory_order_acquire); }
  int read(uint64_t offset, std::span<std::byte> into) override;
  int write(uint64_t offset, std::span<const std::byte> from) override;
  void transfer(std::span<StoreRequest> batch) override;
  int sync() override { return inner_->sync(); }
  int resize(uint64_t size_bytes) override;  // smaller is nothing; new bytes have no space yet
  // Space; 0 also where the store cannot promise it. On an error none of it has any.
  int reserve(uint64_t offset, uint64_t size_bytes) override;
  // Only what is known of it changes: see release().
  int discard(uint64_t offset, uint64_t size_bytes) override;
  int release(uint64_t offset, uint64_t size_bytes) override;
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override {
    return written_.is_untouched(offset, size_bytes);
  }
  void register_buffer(std::span<std::byte> buffer) override { inner_->register_buffer(buffer); }
  StoreTraits traits() const override;
  std::string uri() const override { return inner_->uri(); }
  std::string remark() const override { return inner_->remark(); }
  bool is_unreplicated() const override { return inner_->is_unreplicated(); }
  void use_room(std::shared_ptr<store::Room> room) override;

 private:
  HeapMemoryStore() = default;

  std::shared_ptr<Store> inner_;
  store::WrittenMap written_;  // in system pages
  std::atomic<uint64_t> size_bytes_{0};
  std::atomic<bool> is_ended_{false};
};

}  // namespace outcore::heap
