// AddressMap: which view an address belongs to. One for the process: a fault comes with an address
// and nothing else.
//
// Readers are on the fault path and take no lock: a sorted table under a sequence counter, read
// again if a writer came between. Views are found, and held (View::users), in one step; a held view
// is not freed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "os/address_space.h"
#include "os/process_lock.h"
#include "outcore/result.h"
#include "region/view.h"

namespace outcore::region {

class AddressMap {
 public:
  static constexpr uint64_t kViewsMax = 1 << 20;

  static AddressMap& instance();

  // REQUIRES: the range overlaps no other (asserted). Errors: ENOMEM (more than kViewsMax).
  Status add(View* view);
  // After it no fault finds the view, and nobody holds it: waits until the last user is done.
  void remove(View* view);
  // The view may have grown up to its reservation: nothing to do here, contains() decides.

  // The view of the address, held; nullptr if it is nobody's. The fault path.
  View* find_and_hold(const std::byte* address);
  static void let_go(View* view) { view->users.fetch_sub(1, std::memory_order_release); }

  // Calls f for every view. For fork's child, where nothing else runs, and for metrics (under the
  // writers' lock).
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
  AddressMap();
  uint64_t position_of(
      const std::byte* address) const;  // first entry whose end is past the address
  void open_for_change() { sequence_.fetch_add(1, std::memory_order_acq_rel); }
  void close_after_change() { sequence_.fetch_add(1, std::memory_order_release); }

  os::ProcessLock writers_;
  std::atomic<uint64_t> sequence_{0};  // odd while a writer changes the table
  std::atomic<uint64_t> count_{0};
  os::Table<Entry> entry_;
};

}  // namespace outcore::region
