// Heap: large allocations and large anonymous mappings of the program, whose bytes lie on scratch
// space. There is one for the process. It is off until the settings ask for it, and is made by the
// first allocation that is large enough.
//
// Calls that do not concern it cost a look at one or two words. Its own data about the memory lies
// elsewhere, so its calls touch the memory only to copy or clear it, and then hold no lock. In a
// forked child the addresses are inaccessible until the first touch, which fetches a real copy
// (heap_copy.h) into memory of the kernel; the child allocates nothing there.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "run/preload/free_ranges.h"
#include "run/preload/heap_copy.h"
#include "run/preload/heap_views.h"
#include "run/preload/inside.h"
#include "run/preload/report.h"

namespace outcore::preload {

class Heap {
 public:
  static Heap& instance();
  static void prepare();  // reads the settings; once, when the library is loaded
  // The process ends, but not by a signal or _exit(): what it has booked on servers can be freed.
  static void retire();

  // -- without a lock or a call --
  static bool wants(size_t bytes) { return bytes >= bytes_min_.load(std::memory_order_relaxed); }
  static bool has(const void* address) {
    return reinterpret_cast<uint64_t>(address) - low_.load(std::memory_order_relaxed) <
           span_.load(std::memory_order_relaxed);
  }
  // No allocation is large enough from now on; those that are there stay.
  static void close() { bytes_min_.store(UINT64_MAX, std::memory_order_release); }
  static bool is_used() { return span_.load(std::memory_order_relaxed) != 0; }
  // Whether some of the range belongs to the heap, and the program itself makes the call.
  static bool concerns(const void* address, size_t size_bytes) {
    const uint64_t span = span_.load(std::memory_order_relaxed);
    if (span == 0) return false;
    const uint64_t from = reinterpret_cast<uint64_t>(address), low = low_.load();
    return from < low + span && size_bytes > (from < low ? low - from : 0) && !is_inside();
  }
  // `caller` is an address of code. What another allocator maps for itself is left to the kernel:
  // our own threads allocate there (through the C library), and must never wait for a fault.
  static bool wants_mapping(const void* address, size_t bytes, int protection, int flags,
                            const void* caller);

  // -- the malloc family: heap.cc --
  // nullptr: there is no room, in addresses or on the disk (errno is ENOMEM). `is_zero`: it must
  // read zero. `is_available` says whether there is a heap at all. REQUIRES: `alignment` is a power
  // of two.
  void* allocate(size_t bytes, size_t alignment, bool is_zero, bool* is_available);
  // Frees a block. Any other address ends the program, as in the C library. If there is no memory
  // to note it as free, its addresses are not used again.
  void free(void* p) noexcept;
  // Changes the size in place. nullptr: the block must move.
  void* resize(void* p, size_t bytes);
  // Moves the block elsewhere, with room to grow further. nullptr: as allocate().
  void* move(void* p, size_t bytes);
  size_t usable_bytes(void* p);

  // -- mappings: heap_memory.cc. They return 0 or an errno, or an address or MAP_FAILED with errno.
  // Ranges may have parts that do not belong to the heap. --
  void* map(size_t bytes);  // nullptr: the kernel shall do it
  // Maps at a fixed address, as a part of the heap. False: call give_way(), and let the kernel map.
  bool map_over(std::byte* address, size_t bytes, int protection, int flags);
  // Something else will be mapped there: parts that belong to the heap are the kernel's from now
  // on.
  int give_way(std::byte* address, size_t bytes);
  int unmap(std::byte* address, size_t bytes);
  void* remap(std::byte* address, size_t old_bytes, size_t new_bytes, int flags, std::byte* to);
  int protect(std::byte* address, size_t bytes, int protection);
  int advise(std::byte* address, size_t bytes, int advice);
  // Its faults are messages: the kernel waits for absent pages.
  bool has_messages() const;
  // REQUIRES: it has started
  uint64_t page_bytes() const { return views_->page_bytes(); }
  // The range is the kernel's from now on, with its bytes, in whole pages of ours.
  int leave(const std::byte* address, size_t bytes);
  int lock(const std::byte* address, size_t bytes);
  void unlock(const std::byte* address, size_t bytes);
  void unlock_all();
  void undo_locks();  // the kernel's, after mlockall

  void add_to(Report& report);

  // -- fork: heap_fork.cc --
  // No thread begins to use the heap before fork() is over: the child would have half of a heap.
  static void lock_start();
  static void unlock_start();
  // Allocates what fork() needs before it, so that fork() fails instead of its child. False:
  // ENOMEM. drop_prepared() must follow, in both processes, after fork().
  static bool prepare_fork();
  static void drop_prepared();
  static void before_fork();
  static void after_fork_in_parent(bool may_have_failed);
  static void after_fork_in_child();
  // A forked child has touched memory of its parent. True: the copy is there now. If there can be
  // no copy the child ends with a message.
  static bool revive_at(const std::byte* address);

 private:
  enum class Kind : uint8_t { kAllocation, kMapping };
  struct Block {
    uint64_t bytes = 0;  // that the program may use: whole system pages
    uint64_t room = 0;   // addresses that are reserved for it; usually whole pages of ours
    Kind kind = Kind::kAllocation;
  };
  using Blocks = std::map<uint64_t, Block>;  // by offset
  using Range = FreeRanges::Range;  // what no longer belongs to a block: whole pages of ours

  Heap() = default;
  bool start();
  void start_once();
  uint64_t offset_of(const void* p) const {
    return static_cast<uint64_t>(static_cast<const std::byte*>(p) - views_->address());
  }
  // Takes addresses and space for a new block, which is not in `blocks_` yet. 0 or an errno. Where
  // it has bytes of an earlier block is in `stale`, in order; `may_be_stale`: that is good.
  int take(uint64_t bytes, uint64_t room, uint64_t alignment, uint64_t* offset, bool may_be_stale,
           std::vector<Range>* stale);
  int back(uint64_t offset, uint64_t bytes);  // shown, and space promised. 0 or an errno
  // `stale`: as above; nullptr: it must read zero.
  void* add(uint64_t bytes, uint64_t room, uint64_t alignment, Kind kind,
            std::vector<Range>* stale);
  void put(uint64_t offset, const Block& block);
  Block block_of(void* p, const char* call);
  // What belongs to no block any more: the addresses, and the pages in which no block is, which no
  // other thread can take.
  struct Gone {
    Range pages, own;
  };
  void release(const Range& pages, const Range& own);  // drops their bytes and frees them
  void release_behind(uint64_t to, const std::vector<Gone>& gone);
  int empty(uint64_t from, uint64_t to);
  bool empty_all(const std::vector<Range>& ranges);
  uint64_t stale_bytes_most() const;
  void release_excess();
  bool keep_stale(const Range& range);
  bool has_too_much_space() const;  // for what is allocated
  Blocks::iterator block_that_ends(uint64_t to, Kind kind);
  // Lengthens that block to `new_end`, if the addresses behind it are free.
  bool grow(uint64_t to, uint64_t new_end, Kind kind);
  void add_live(int64_t bytes);
  void tell_refusal(uint64_t bytes);
  void trim();
  // heap_fork.cc
  void prepare_copy();
  // REQUIRES: the lock
  bool needs_copy() const { return live_bytes_ != 0 && copy_ == nullptr && copy_error_ == 0; }
  void inherit();
  void revive();
  int unmap_childs(uint64_t from, uint64_t to);
  int protect_childs(uint64_t from, uint64_t to, int protection);
  int advise_childs(uint64_t from, uint64_t to, int advice);
  void* remap_childs(uint64_t from, uint64_t to, uint64_t bytes, int flags);
  void free_childs(void* p);
  // heap_memory.cc
  std::vector<Gone> cut_blocks(uint64_t from, uint64_t to);
  Range pages_in(uint64_t from, uint64_t to);
  bool is_mapped(uint64_t from, uint64_t to);
  bool is_free(uint64_t from, uint64_t to);
  int on_parts(const std::byte* address, size_t bytes,
               const std::function<int(uint64_t, uint64_t)>& ours,
               const std::function<int(std::byte*, size_t)>& others);
  bool take_over(uint64_t from, uint64_t to);
  int unmap_ours(uint64_t from, uint64_t to);
  void* move_mapping(uint64_t from, uint64_t to, uint64_t bytes, int flags, std::byte* fixed);
  bool is_kernels(uint64_t from, uint64_t to);
  void* move_kernels(uint64_t from, uint64_t to, uint64_t bytes, int flags, std::byte* fixed);
  std::byte* place_for(uint64_t bytes, std::byte* fixed);
  int advise_ours(region::View& view, uint64_t from, uint64_t to, int advice);
  int zero_edges(std::byte* address, size_t bytes);
  int free_edge(uint64_t from, uint64_t to, Range* to_zero);
  bool is_pinned(const Range& range);
  bool is_locked(const std::byte* address, size_t bytes);
  int while_unpinned(uint64_t from, uint64_t to, const std::function<int()>& change);
  int pin(uint64_t from, uint64_t to, bool is_pin);
  int change_pins(uint64_t from, uint64_t to, bool is_pin);
  std::vector<Range> take_pins(uint64_t from, uint64_t to);
  void forget_pins(uint64_t from, uint64_t to);

  static std::atomic<uint64_t> bytes_min_, low_, span_;

  os::Lock starting_;
  std::atomic<bool> is_started_{false};
  std::unique_ptr<HeapViews> views_;  // nullptr: there is no heap

  // Belongs to a fork, and to the child that it makes.
  struct Inherited {
    std::byte* address;
    uint64_t bytes, offset;
    int protection;
  };
  bool is_forking_ = false, is_child_ = false;
  std::unique_ptr<HeapCopy> copy_;
  int copy_error_ = 0;  // why there is no copy
  os::Lock reviving_;
  std::vector<Inherited> childs_;        // in a child: what it has a copy of, or will have
  std::atomic<bool> is_revived_{false};  // it has the copy

  os::Lock lock_;
  FreeRanges free_;
  Blocks blocks_;
  uint64_t live_bytes_ = 0, live_bytes_max_ = 0, allocations_ = 0;
  std::atomic<bool> has_told_refusal_{false};
  uint64_t refused_ = 0, refused_bytes_max_ = 0;  // mappings for which there was no room
  // Threads that trim, for whose end those wait who find no addresses; and how many have ended.
  std::atomic<uint32_t> trimming_{0}, trims_{0};

  std::mutex pinning_;
  std::map<uint64_t, uint64_t> pinned_;  // by mlock, in pages of ours: from → to
  std::atomic<bool> has_pins_{false};
};

}  // namespace outcore::preload
