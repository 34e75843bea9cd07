// HeapFile: an unnamed file as the store in which the bytes of a heap lie.
//
// Fault safe. The file has space where reserve() has allocated it and release() has not freed it. A
// range that was never written reads undefined bytes. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/store/booking.h"
#include "core/store/buffer_set.h"
#include "core/store/direct_file.h"
#include "outcore/store.h"
#include "outcore/store_kind.h"

namespace outcore::preload {

class HeapFile final : public Store, public store::Booking {
 public:
  // An empty folder: TMPDIR, else /var/tmp. Errors: those of the system.
  static Result<std::shared_ptr<HeapFile>> open(const std::string& folder,
                                                const StoreLimits& limits);

  // Where further files may be created.
  const std::string& folder() const { return folder_; }
  int descriptor() const { return file_.fd(); }

  uint64_t size_bytes() const override { return size_bytes_.load(std::memory_order_acquire); }
  int read(uint64_t offset, std::span<std::byte> into) override { return file_.read(offset, into); }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    return file_.write(offset, from);
  }
  void transfer(std::span<StoreRequest> batch) override { file_.transfer(batch, traits_); }
  int resize(uint64_t size_bytes) override;  // the file does not change
  // 0 also if the filesystem cannot reserve. After an error the range has no space.
  int reserve(uint64_t offset, uint64_t size_bytes) override;
  int release(uint64_t offset, uint64_t size_bytes) override;
  void register_buffer(std::span<std::byte> buffer) override { leases_.lend(buffer); }
  StoreTraits traits() const override { return traits_; }
  std::string uri() const override { return folder_; }
  std::string remark() const override;

  Result<uint64_t> free_bytes() override;
  uint64_t granule_bytes() const override;

 private:
  HeapFile() = default;

  store::DirectFile file_;
  store::BufferLeases leases_;
  StoreTraits traits_;
  std::string folder_;
  std::atomic<uint64_t> size_bytes_{0};
  std::atomic<bool> is_reservable_{true};  // false where the filesystem cannot reserve
};

}  // namespace outcore::preload
