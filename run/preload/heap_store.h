// HeapStore: the store of a heap's addresses. It lies on another store, which reserves space range
// by range: an unnamed file (HeapFile), or memory of other machines.
//
// Fault safe. A range that was not written since it was promised reads zero without I/O: a map
// says, for each system page, whether it was written, whatever the other store holds there. So
// freed memory need not be erased.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/store/booking.h"
#include "core/store/room.h"
#include "core/store/uri.h"
#include "core/store/written_map.h"
#include "outcore/store.h"
#include "outcore/store_kind.h"

namespace outcore::preload {

class HeapStore final : public Store, public store::Lodger {
 public:
  // scratch:[FOLDER][?parameters], whose default is `folder` (empty: TMPDIR, else /var/tmp); or
  // far://… (docs/reference/stores.md). Errors: those of the URI, and of the system.
  static Result<std::shared_ptr<HeapStore>> open(const std::string& uri, const std::string& folder);
  // REQUIRES: called once, before the functions below. Whole pages are written.
  Status cover(uint64_t capacity_bytes, uint64_t page_bytes);

  // How many bytes could be promised now.
  uint64_t free_bytes() const;
  // Where further files may be created.
  const std::string& folder() const { return folder_; }
  // Reserves space for the range, so that what is written there can be stored. 0 or -errno;
  // -ENOSPC: nothing was promised. REQUIRES, here and below: whole system pages.
  int promise(uint64_t offset, uint64_t size_bytes);
  // The range needs no space any more. REQUIRES: it reads zero.
  void withdraw(uint64_t offset, uint64_t size_bytes);
  // Copies everything that was written below `end` to the same places of a file that reads zero. 0
  // or -errno. REQUIRES: nobody writes meanwhile.
  int copy_to(int file, uint64_t end);
  uint64_t reserved_bytes() const { return reserved_bytes_.load(std::memory_order_relaxed); }
  // Whether nothing of the range was written since it was last discarded.
  bool is_untouched(uint64_t offset, uint64_t size_bytes) const {
    return written_.is_untouched(offset, size_bytes);
  }
  // As discard(); cannot fail.
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
  std::string uri() const override { return "allocations in " + space_->uri(); }
  std::string remark() const override { return space_->remark(); }
  bool is_unreplicated() const override { return space_->is_unreplicated(); }
  void retire() override { space_->retire(); }
  bool is_far() const { return file_ < 0; }
  void use_room(std::shared_ptr<store::Room> room) override;

 private:
  HeapStore() = default;
  Status open_far(const StoreKind& kind, store::Uri uri, const StoreLimits& limits);
  int copy_run(int file, uint64_t from, uint64_t to, std::vector<std::byte>& buffer);
  int reserve_space(uint64_t from, uint64_t to);
  void release_space(uint64_t from, uint64_t to);

  std::shared_ptr<Store> space_;
  store::Booking* booking_ = nullptr;  // the space's
  int file_ = -1;                      // the space's; -1: it is on other machines
  std::string folder_;
  uint64_t granule_bytes_ = 0;  // space is reserved and released in multiples of this
  store::WrittenMap written_;
  store::WrittenMap reserved_;  // the system pages that have space
  std::atomic<uint64_t> reserved_bytes_{0};
  std::mutex reserving_;
};

}  // namespace outcore::preload
