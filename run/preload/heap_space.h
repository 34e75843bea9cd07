// HeapSpace: where the bytes of a heap rest: an unnamed file, or memory of other machines.
//
// Fault safe. Space is got and given back range by range; what is read of what was never written is
// anything.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/store/buffer_set.h"
#include "core/store/direct_file.h"
#include "core/store/room.h"
#include "outcore/store.h"

namespace outcore::preload {

class HeapSpace {
 public:
  // scratch:[FOLDER][?parameters], without a folder it is `folder` (empty: TMPDIR, else /var/tmp);
  // or far://… (docs/reference/stores.md). Errors: those of the URI, and what the system said.
  static Result<std::unique_ptr<HeapSpace>> open(const std::string& uri, const std::string& folder);
  virtual ~HeapSpace() = default;

  // REQUIRES: called once, before all that follows.
  // Pages are written as a whole.
  virtual Status cover(uint64_t capacity_bytes, uint64_t page_bytes) = 0;
  virtual uint64_t free_bytes() const = 0;
  // Space is got and given back in multiples of this.
  virtual uint64_t granule_bytes() const = 0;
  // 0, or -errno and nothing.
  virtual int reserve(uint64_t offset, uint64_t size_bytes) = 0;
  // What cannot be given back stays reserved, unknown to us: no harm but the space.
  virtual void give_up(uint64_t offset, uint64_t size_bytes) = 0;
  // 0 or -errno.
  virtual int read(uint64_t offset, std::span<std::byte> into) = 0;
  virtual int write(uint64_t offset, std::span<const std::byte> from) = 0;
  virtual void transfer(std::span<StoreRequest> batch) = 0;
  virtual void register_buffer(std::span<std::byte> buffer) { (void)buffer; }
  // A file that can be copied from by copy_file_range at the same offsets; -1: none.
  virtual int file() const { return -1; }

  const StoreTraits& traits() const { return traits_; }
  // Where files may be made beside it.
  const std::string& folder() const { return folder_; }
  virtual std::string name() const = 0;
  virtual std::string remark() const = 0;
  virtual bool is_unreplicated() const { return false; }
  // The process ends: what is booked elsewhere is not needed for long.
  virtual void retire() {}
  virtual void use_room(std::shared_ptr<store::Room> room) { (void)room; }

 protected:
  StoreTraits traits_;
  std::string folder_;
};

}  // namespace outcore::preload
