// HeapStore: space behind a range of addresses, of which parts are promised and taken back one by
// one.
//
// Fault safe. What was never written since it was promised reads zero without I/O: a map of what
// was written, in system pages, is the truth, and not what the space holds. So nothing need be
// erased when memory is freed.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/store/room.h"
#include "core/store/written_map.h"
#include "outcore/store.h"
#include "run/preload/heap_space.h"

namespace outcore::preload {

class HeapStore final : public Store, public store::Lodger {
 public:
  // As HeapSpace::open.
  static Result<std::shared_ptr<HeapStore>> open(const std::string& uri, const std::string& folder);
  // REQUIRES: called once, before all that follows.
  Status cover(uint64_t capacity_bytes, uint64_t page_bytes);

  // Bytes that could be promised now.
  uint64_t free_bytes() const { return space_->free_bytes(); }
  const std::string& folder() const { return space_->folder(); }
  // Space for the range, so that what is written there can be stored. 0, or -errno: -ENOSPC, and
  // then nothing is promised. REQUIRES, here and below: whole system pages.
  int promise(uint64_t offset, uint64_t size_bytes);
  // The range need not have space any more. REQUIRES: it reads zero.
  void take_back(uint64_t offset, uint64_t size_bytes);
  // Everything that was written below `end`, to the same places of a file that reads zero. 0 or
  // -errno. REQUIRES: nobody writes meanwhile.
  int copy_to(int file, uint64_t end);
  uint64_t reserved_bytes() const { return reserved_bytes_.load(std::memory_order_relaxed); }
  // Nothing of the range was written, or it was discarded since.
  bool is_untouched(uint64_t offset, uint64_t size_bytes) const {
    return written_.is_untouched(offset, size_bytes);
  }
  // As discard(), which cannot fail.
  void forget(uint64_t offset, uint64_t size_bytes) { written_.clear_inside(offset, size_bytes); }

  uint64_t size_bytes() const override { return written_.capacity_bytes(); }
  int read(uint64_t offset, std::span<std::byte> into) override;
  int write(uint64_t offset, std::span<const std::byte> from) override;
  void transfer(std::span<StoreRequest> batch) override;
  int discard(uint64_t offset, uint64_t size_bytes) override;
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override {
    return written_.is_untouched(offset, size_bytes);
  }
  void register_buffer(std::span<std::byte> buffer) override { space_->register_buffer(buffer); }
  StoreTraits traits() const override { return space_->traits(); }
  std::string uri() const override { return "allocations in " + space_->name(); }
  std::string remark() const override { return space_->remark(); }
  bool is_unreplicated() const override { return space_->is_unreplicated(); }
  void retire() { space_->retire(); }
  bool is_far() const { return space_->file() < 0; }
  void use_room(std::shared_ptr<store::Room> room) override { space_->use_room(std::move(room)); }

 private:
  HeapStore() = default;
  int copy_run(int file, uint64_t from, uint64_t to, std::vector<std::byte>& buffer);
  void give_up(uint64_t from, uint64_t to);

  std::unique_ptr<HeapSpace> space_;
  store::WrittenMap written_;
  store::WrittenMap reserved_;  // what there is space for
  std::atomic<uint64_t> reserved_bytes_{0};
  std::mutex reserving_;
};

}  // namespace outcore::preload
