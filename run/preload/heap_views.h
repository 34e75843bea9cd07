// HeapViews: the mappings of the heap's addresses: regions side by side over one store; at first
// one. If the program changes the protection of a range, the range gets a region of its own. A
// range that we cannot map as the program wants it is left to the kernel, and belongs to no region.
// Offsets count from the first address.
//
// Any thread but the fault path, with signals blocked.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "core/base/function_ref.h"
#include "core/runtime/runtime_impl.h"
#include "run/preload/heap_store.h"

namespace outcore::preload {

// What memory of the heap has at first.
inline constexpr int kHeapProtection = PROT_READ | PROT_WRITE;

class HeapViews {
 public:
  // Reserves as many addresses as may ever be needed. Errors: those of the folder, of the
  // addresses, and of Runtime::Impl::map.
  static Result<std::unique_ptr<HeapViews>> make(const std::shared_ptr<Runtime::Impl>& runtime);

  std::byte* address() const { return address_; }
  uint64_t size_bytes() const { return size_bytes_; }
  uint64_t page_bytes() const { return cache_->page_bytes; }
  HeapStore& store() const { return *store_; }
  paging::PageCache& cache() const { return *cache_; }
  paging::Engine& engine() const { return *runtime_->engine; }

  // From now on the first `end` bytes can be touched.
  Status show(uint64_t end);
  // Calls ours(view, from, to) for parts of the range that are ours, and kernels(from, to) for
  // parts that are the kernel's, in order, until one returns an errno.
  int for_each(uint64_t from, uint64_t to,
               const std::function<int(region::View&, uint64_t, uint64_t)>& ours,
               const std::function<int(uint64_t, uint64_t)>& kernels);
  // No view changes before resume(). `has_others`: bytes do not change either, because other
  // threads that touch them wait; otherwise the caller sees to that. 0 or an errno.
  int stop(bool has_others);
  void resume();
  int copy_to(int file, uint64_t end);  // the bytes below. REQUIRES: stopped
  uint64_t shown_bytes() const { return shown_bytes_.load(); }  // does not grow while stopped
  // As mprotect. What only the kernel can do is the kernel's from now on, with its bytes. 0 or an
  // errno. REQUIRES, here and below: whole system pages.
  int protect(uint64_t from, uint64_t to, int protection);
  // PROT_READ and so on; -1: the page is the kernel's.
  int protection_at(uint64_t offset);
  // That of all of the range; -1: parts differ, or one is a file of the kernel's.
  int protection_in(uint64_t from, uint64_t to);
  // Makes the range the kernel's, with its bytes. Whole pages of ours. 0 or an errno.
  int hand_over(uint64_t from, uint64_t to);
  // Makes the range the kernel's: `place` maps something there. Whole pages of ours. 0 or an errno.
  int give_to_kernel(uint64_t from, uint64_t to,
                     const std::function<void(std::byte*, uint64_t)>& place);
  // The range reads zero and has no frames any more. Whole pages of ours. 0 or an errno.
  int discard(uint64_t from, uint64_t to);
  // Those of its pages that are in no frame read zero, and not what was stored of them. Whole pages
  // of ours.
  void forget_absent(uint64_t from, uint64_t to);

 private:
  struct Part {
    std::unique_ptr<Region::Impl> region;
    uint64_t end = 0;  // of the last part: the end of all addresses
    int protection = 0;
  };
  using Parts = std::map<uint64_t, Part>;

  HeapViews() = default;
  Status reserve();
  Parts::iterator part_at(uint64_t offset);  // the first that ends behind the offset
  bool is_protected_so(uint64_t from, uint64_t to, int protection);
  int divide(Parts::iterator part, uint64_t at);
  int set_protection(uint64_t start, Part& part, int protection);
  int copy_to_kernel(uint64_t from, uint64_t to);
  int copy_to_kernel_here(uint64_t from, uint64_t to);
  Status read_written(std::byte* copy, uint64_t from, uint64_t to);
  int take_out(uint64_t from, uint64_t to, base::FunctionRef<Status()> prepare,
               base::FunctionRef<Status()> place);
  int discard_resident(uint64_t from, uint64_t to);
  bool forget_if_absent(uint64_t at);

  std::shared_ptr<Runtime::Impl> runtime_;
  std::shared_ptr<HeapStore> store_;
  paging::PageCache* cache_ = nullptr;
  std::byte* address_ = nullptr;
  uint64_t size_bytes_ = 0;
  std::mutex changing_;  // guards the parts, and how much is shown
  Parts parts_;
  std::atomic<uint64_t> shown_bytes_{0};
  bool is_halted_ = false;
};

}  // namespace outcore::preload
