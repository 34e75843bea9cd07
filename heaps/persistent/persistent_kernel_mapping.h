// KernelMapping: a persistent heap in a mapping of the kernel's (MAP_SHARED): the kernel decides
// which pages are in memory and when they are written, as with any file that is mapped. See
// docs/internals/decisions/0068-heaps-over-the-kernels-mapping.md.
//
// Bytes that are written to it are the file's at once, for every process; durable they are after
// Store::sync(), which also reports, only once, what the kernel could not write. In a
// forked child the addresses are inaccessible.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "heaps/persistent/persistent_mapping.h"
#include "outcore/options.h"
#include "outcore/store.h"

namespace outcore::heap::persistent {

class KernelMapping final : public Mapping {
 public:
  // As Runtime::map(), of which it knows access, size_bytes, reserve_bytes and advice (random and
  // sequential). Errors: ENOTSUP (the store is not a file), EINVAL (the store is smaller), ENOMEM
  // (addresses), and those of mmap().
  static Result<std::unique_ptr<Mapping>> map(std::shared_ptr<Store> store, const MapOptions& o);
  ~KernelMapping() override;

  bool is_mapped() const override { return base_ != nullptr; }
  std::byte* data() const override { return base_; }
  uint64_t size_bytes() const override { return size_bytes_.load(std::memory_order_acquire); }
  const std::string& uri() const override { return uri_; }
  Region* region() override { return nullptr; }

  Status write(uint64_t offset, std::span<const std::byte> from) override;
  Status flush() override { return {}; }  // the file has them already
  Status discard(uint64_t offset, uint64_t size_bytes) override;
  Status grow(uint64_t size_bytes) override;
  // The kernel has a call that brings pages in to be written, but none that does so only as far as
  // there is room: its own way is a page at a time.
  void prepare(uint64_t, uint64_t) noexcept override {}
  Status unmap(bool force) override;

 private:
  explicit KernelMapping(std::shared_ptr<Store> store)
      : store_(std::move(store)), uri_(store_->uri()) {}
  Status show(uint64_t from, uint64_t to);
  static void hide_in_child();

  std::shared_ptr<Store> store_;
  std::string uri_;
  std::byte* base_ = nullptr;
  std::atomic<uint64_t> size_bytes_{0};
  uint64_t reserve_bytes_ = 0;
  int file_ = -1;  // the store's
  bool is_writable_ = false;
  int advice_ = 0;  // of the kernel; 0 (MADV_NORMAL): none
};

}  // namespace outcore::heap::persistent
