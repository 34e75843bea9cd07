// OverlayStore: the store of a private mapping: a base store, covered by the changes of this
// mapping.
//
// Reads come from the base, except for 4 KiB blocks that were written: those come from scratch.
// Fault safe if both stores are. Any thread; shares ownership of both stores.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/store/written_map.h"
#include "outcore/store.h"

namespace outcore::store {

// Makes the range [first_offset, first_offset + size_bytes) of `base` writable; byte first_offset +
// i is kept at offset i of `scratch`, which nobody else may use. The range may end past the base,
// where it reads zero. nullptr if there is no memory for the map of written blocks (a bit a block).
// REQUIRES: first_offset is a multiple of 4096; scratch->size_bytes() >= size_bytes.
std::shared_ptr<Store> make_overlay(std::shared_ptr<Store> base, std::shared_ptr<Store> scratch,
                                    uint64_t first_offset, uint64_t size_bytes);

class OverlayStore final : public Store {
 public:
  OverlayStore(std::shared_ptr<Store> base, std::shared_ptr<Store> scratch, uint64_t first_offset,
               uint64_t size_bytes);
  int prepare();  // 0 or -ENOMEM

  // The base's size or the end of the range, whichever is larger.
  uint64_t size_bytes() const override;
  int read(uint64_t offset, std::span<std::byte> into) override;
  // A block that is written in part is first copied from the base, under a lock; whole blocks are
  // not, nor is the last block up to the end of the range. -EACCES outside of the range.
  int write(uint64_t offset, std::span<const std::byte> from) override;
  void transfer(std::span<StoreRequest> batch) override;
  // sync(): does nothing. resize(): -ENOTSUP. discard(): writes zeros to scratch.
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override;
  void register_buffer(std::span<std::byte> buffer) override;
  StoreTraits traits() const override;
  std::string uri() const override { return base_->uri() + " (private)"; }
  std::string remark() const override { return base_->remark(); }

 private:
  bool is_inside(uint64_t offset, uint64_t size_bytes) const;
  bool is_whole_blocks(uint64_t offset, uint64_t size_bytes) const;
  uint64_t run_end(uint64_t offset, uint64_t end, bool& is_own) const;
  int read_base(uint64_t offset, std::span<std::byte> into);
  int write_blocks(uint64_t offset, std::span<const std::byte> from);
  int write_part(uint64_t offset, std::span<const std::byte> from);
  Store* target_of(const StoreRequest& request, uint64_t& offset) const;

  const std::shared_ptr<Store> base_;
  const std::shared_ptr<Store> scratch_;
  const uint64_t first_;
  const uint64_t end_;
  WrittenMap written_;  // offsets from the start of the range
  std::mutex part_mutex_;
};

}  // namespace outcore::store
