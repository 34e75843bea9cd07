// AddressMap: finds the view that contains an address. There is one for the process, because a
// fault has an address and nothing else.
//
// Readers are on the fault path and take no lock: they read a sorted table under a sequence
// counter, and read it again if a writer changed it meanwhile. Finding a view and holding it
// (View::users) is one step; a view that is held is not freed. Writers: any thread, one at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/base/assert.h"
#include "core/os/address_space.h"
#include "core/os/process_lock.h"
#include "core/region/view.h"
#include "outcore/result.h"

namespace outcore::region {

class AddressMap {
 public:
  static constexpr uint64_t kViewsMax = 1 << 20;

  static AddressMap& instance();

  // REQUIRES: the range overlaps no other (asserted). Errors: ENOMEM (more than kViewsMax, or no
  // addresses for the table, which the first view makes).
  Status add(View* view);
  // Removes the view. Afterwards no fault finds it; waits until no thread holds it, and calls
  // `while_held` again and again meanwhile: it releases what only queues hold.
  void remove(View* view, const std::function<void()>& while_held = {});
  // Replaces the old view by `parts`, which lie inside its addresses and are sorted, in one step: a
  // fault on an address that both contain finds one of them. Then waits as remove() does.
  Status replace(View* old, std::span<View* const> parts,
                 const std::function<void()>& while_held = {});
  // A view may grow up to its reservation without a call: contains() decides.

  // The view that contains the address, held; nullptr if there is none. A view that a forked child
  // inherited contains all addresses reserved for it. The fault path.
  View* find_and_hold(const std::byte* address);
  static void release(View* view) {
    const uint32_t before = view->users.fetch_sub(1, std::memory_order_release);
    OC_CHECK(before > 0);
  }

  // A number that differs after each change. A fault that finds no view may be older than the
  // change that removed its view.
  uint64_t changes() const { return sequence_.load(std::memory_order_acquire); }

  // In a forked child, where no thread holds the parent's views: removes this one. May be called
  // from within for_each.
  void forget_in_child(View& view);
  // The same for those that begin in the range, once the child may have threads.
  void forget_inherited(const std::byte* address, uint64_t size_bytes);
  // Calls f for every view: in a forked child, where no other thread runs, and for metrics (under
  // the writers' lock).
  void for_each(const std::function<void(View&)>& f);
  // True if [address, address + size) overlaps the reserved addresses of some view.
  bool overlaps(const std::byte* address, uint64_t size_bytes);
  bool is_valid();

 private:
  struct Entry {
    std::atomic<const std::byte*> start;
    std::atomic<const std::byte*> end;
    std::atomic<View*> view;
  };
  AddressMap() = default;
  void set_entry(uint64_t position, View* view);
  void move(uint64_t from, uint64_t to) {
    entry_[to].start.store(entry_[from].start.load(std::memory_order_relaxed),
                           std::memory_order_release);
    entry_[to].end.store(entry_[from].end.load(std::memory_order_relaxed),
                         std::memory_order_release);
    entry_[to].view.store(entry_[from].view.load(std::memory_order_relaxed),
                          std::memory_order_release);
  }
  static void wait_for_users(const View* view, const std::function<void()>& while_held);
  uint64_t position_of(
      const std::byte* address) const;  // the first entry whose end is past the address
  void open_for_change() {
    const uint64_t before = sequence_.fetch_add(1, std::memory_order_acq_rel);
    OC_CHECK(before % 2 == 0);
  }
  void close_after_change() {
    const uint64_t before = sequence_.fetch_add(1, std::memory_order_release);
    OC_CHECK(before % 2 == 1);
  }

  os::ProcessLock writers_;
  std::atomic<uint64_t> sequence_{0};  // odd while a writer changes the table
  std::atomic<uint64_t> count_{0};
  os::Table<Entry> entry_;
};

}  // namespace outcore::region
