// HeapViews: what shows the heap's addresses: regions side by side over one store, at first one. A
// range whose protection the program changes gets a region of its own; what we cannot show is left
// to the kernel, and is no region's. Offsets count from the first address.
//
// Any thread but the fault path, with signals blocked.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "core/runtime/runtime_impl.h"
#include "run/preload/heap_store.h"

namespace outcore::preload {

class HeapViews {
 public:
  // Reserves addresses, as many as may ever be needed of them. Errors: those of the folder, of the
  // addresses and of Runtime::Impl::map.
  static Result<std::unique_ptr<HeapViews>> make(const std::shared_ptr<Runtime::Impl>& runtime);

  std::byte* address() const { return address_; }
  uint64_t size_bytes() const { return size_bytes_; }
  uint64_t page_bytes() const { return cache_->page_bytes; }
  HeapStore& store() const { return *store_; }
  paging::PageCache& cache() const { return *cache_; }
  paging::Engine& engine() const { return *runtime_->engine; }

  // The first `end` bytes can be touched from now on.
  Status show(uint64_t end);
  // Calls ours(view, from, to) for what is shown of the range, and kernels(from, to) for what is
  // the kernel's, in order, until one returns an errno.
  int for_each(uint64_t from, uint64_t to,
               const std::function<int(region::View&, uint64_t, uint64_t)>& ours,
               const std::function<int(uint64_t, uint64_t)>& kernels);
  // Until go_on() no view changes. `has_others`: nor do the bytes, for whoever touches them waits;
  // else the caller sees to that. 0 or an errno.
  int stop(bool has_others);
  void go_on();
  int copy_to(int file, uint64_t end);  // what lies below. REQUIRES: stopped
  uint64_t shown_bytes() const { return shown_bytes_.load(); }  // does not grow while stopped
  // As mprotect. What only the kernel can do, it does from now on, with the bytes that are there. 0
  // or an errno. REQUIRES: whole system pages, here and below.
  int protect(uint64_t from, uint64_t to, int protection);
  // PROT_READ and so on; -1: it is the kernel's.
  int protection_at(uint64_t offset);
  // The range is the kernel's from now on, with the bytes that are there. Whole pages of ours. 0 or
  // an errno.
  int hand_over(uint64_t from, uint64_t to);
  // The range is the kernel's from now on: `place` maps something there. Whole pages of ours. 0 or
  // an errno.
  int give_to_kernel(uint64_t from, uint64_t to,
                     const std::function<void(std::byte*, uint64_t)>& place);
  // The range reads zero, and has no frames. Whole pages of ours. 0 or an errno.
  int discard(uint64_t from, uint64_t to);

 private:
  struct Part {
    std::unique_ptr<Region::Impl> region;
    uint64_t end = 0;  // of the last one: of all addresses
    int protection = 0;
  };
  using Parts = std::map<uint64_t, Part>;

  HeapViews() = default;
  Status reserve();
  Parts::iterator part_at(uint64_t offset);  // the first whose end is behind the offset
  bool is_protected_so(uint64_t from, uint64_t to, int protection);
  int divide(Parts::iterator part, uint64_t at);
  int set_protection(uint64_t start, Part& part, int protection);
  int copy_to_kernel(uint64_t from, uint64_t to);
  int take_out(uint64_t from, uint64_t to, const std::function<void(std::byte*, uint64_t)>& place);
  int discard_resident(uint64_t from, uint64_t to);

  std::shared_ptr<Runtime::Impl> runtime_;
  std::shared_ptr<HeapStore> store_;
  paging::PageCache* cache_ = nullptr;
  std::byte* address_ = nullptr;
  uint64_t size_bytes_ = 0;
  std::mutex changing_;  // the parts, and how much is shown
  Parts parts_;
  std::atomic<uint64_t> shown_bytes_{0};
  bool is_halted_ = false;
};

}  // namespace outcore::preload
