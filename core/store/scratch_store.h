// ScratchStore: space in an unnamed file: reserved when it is opened, gone with the process.
//
// With `reserve=no` in the URI, space is allocated as it is written, and the disk may then be full.
//
// Fault safe. What was never written reads zero without I/O. The file has no name, so nobody else
// can write it, and the map of what was written is exact. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/store/buffer_set.h"
#include "core/store/direct_file.h"
#include "core/store/written_map.h"
#include "outcore/store.h"

namespace outcore::store {

// Creates an unnamed file in the folder (empty: TMPDIR, else /var/tmp; set to the one used). A
// descriptor, or -errno.
int open_scratch_file(std::string* folder);

struct ScratchStoreOptions {
  std::string folder;  // empty: TMPDIR, else /var/tmp
  uint64_t size_bytes = 0;
  unsigned read_concurrency = 0;
  unsigned write_concurrency = 0;
  bool is_reserved = true;
};

class ScratchStore final : public Store {
 public:
  // Errors: ENOSPC (the message has the bytes needed and free), ENOMEM, and those of the system for
  // the folder.
  static Result<std::shared_ptr<Store>> open(const ScratchStoreOptions& options);

  uint64_t size_bytes() const override { return size_bytes_.load(std::memory_order_acquire); }
  int read(uint64_t offset, std::span<std::byte> into) override;
  int write(uint64_t offset, std::span<const std::byte> from) override;
  void transfer(std::span<StoreRequest> batch) override;
  int resize(uint64_t size_bytes) override;                    // enlarging reserves first: -ENOSPC
  int reserve(uint64_t offset, uint64_t size_bytes) override;  // -ENOTSUP: as FileStore
  int discard(uint64_t offset, uint64_t size_bytes) override;
  int release(uint64_t offset, uint64_t size_bytes) override;
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override;
  void register_buffer(std::span<std::byte> buffer) override { leases_.lend(buffer); }
  StoreTraits traits() const override { return traits_; }
  std::string uri() const override {
    return "scratch:" + folder_ + (is_sparse_ ? "?reserve=no" : "");
  }
  std::string remark() const override;

 private:
  ScratchStore() = default;
  int extend(uint64_t offset, uint64_t size_bytes);
  Status reserve_first(uint64_t size_bytes);

  DirectFile file_;
  BufferLeases leases_;
  WrittenMap written_;
  std::string folder_;
  StoreTraits traits_;
  std::atomic<uint64_t> size_bytes_{0};
  bool is_sparse_ = false;               // as requested
  std::atomic<bool> is_reserved_{true};  // false if the filesystem cannot reserve
};

}  // namespace outcore::store
