#include "core/region/address_map.h"

#include <cerrno>

#include "core/base/assert.h"

namespace outcore::region {

AddressMap& AddressMap::instance() {
  static AddressMap* map =
      new AddressMap;  // never destroyed: faults may come until the process ends
  return *map;
}

uint64_t AddressMap::position_of(const std::byte* address) const {
  uint64_t low = 0, high = count_.load(std::memory_order_acquire);
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (entry_[middle].end.load(std::memory_order_acquire) <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

Status AddressMap::add(View* view) {
  const os::SignalBlock block;
  const os::Locked locked(writers_);
  if (entry_.count() == 0)  // the first view: there may be no addresses left for the table
    if (Status s = entry_.allocate(kViewsMax); !s) return s;
  const uint64_t count = count_.load(std::memory_order_relaxed);
  if (count == kViewsMax) return Error{ENOMEM, "map: a process can have at most 1048576 regions"};
  OC_CHECK(count < kViewsMax);
  OC_CHECK(view->address != nullptr);
  OC_CHECK(view->reserved_bytes != 0);
  OC_CHECK(view->size_bytes.load() <= view->reserved_bytes);
  const std::byte* end = view->address + view->reserved_bytes;
  const uint64_t position = position_of(view->address);
  OC_CHECK(position == count || entry_[position].start.load() >= end);
  open_for_change();
  for (uint64_t i = count; i > position; --i) move(i - 1, i);
  set_entry(position, view);
  count_.store(count + 1, std::memory_order_release);
  close_after_change();
  OC_ASSERT(is_valid());
  return {};
}

void AddressMap::remove(View* view, const std::function<void()>& while_held) {
  {
    const os::SignalBlock block;
    const os::Locked locked(writers_);
    const uint64_t count = count_.load(std::memory_order_relaxed);
    const uint64_t position = position_of(view->address);
    OC_CHECK(position < count);
    OC_CHECK(entry_[position].view.load() == view);
    open_for_change();
    for (uint64_t i = position; i + 1 < count; ++i) move(i + 1, i);
    count_.store(count - 1, std::memory_order_release);
    close_after_change();
  }
  wait_for_users(view, while_held);
}

// This does not wait long: a user is inside a fault, whose waits are bounded.
void AddressMap::wait_for_users(const View* view, const std::function<void()>& while_held) {
  while (view->users.load(std::memory_order_acquire) != 0) {
    if (while_held) while_held();
    os::yield();
  }
}

void AddressMap::set_entry(uint64_t position, View* view) {
  OC_CHECK(position < kViewsMax);
  OC_ASSERT(sequence_.load() % 2 == 1);
  entry_[position].start.store(view->address, std::memory_order_release);
  entry_[position].end.store(view->address + view->reserved_bytes, std::memory_order_release);
  entry_[position].view.store(view, std::memory_order_release);
}

Status AddressMap::replace(View* old, std::span<View* const> parts,
                           const std::function<void()>& while_held) {
  OC_CHECK(!parts.empty());
  {
    const os::SignalBlock block;
    const os::Locked locked(writers_);
    const uint64_t count = count_.load(std::memory_order_relaxed), more = parts.size() - 1;
    if (count + more > kViewsMax)
      return Error{ENOMEM, "map: a process can have at most 1048576 regions"};
    const uint64_t position = position_of(old->address);
    OC_CHECK(position < count);
    OC_CHECK(entry_[position].view.load() == old);
    const std::byte* end = old->address;
    for (const View* part : parts) {
      OC_CHECK(part->address >= end);
      OC_CHECK(part->reserved_bytes != 0);
      end = part->address + part->reserved_bytes;
    }
    OC_CHECK(end <= old->address + old->reserved_bytes);
    open_for_change();
    for (uint64_t i = count; i-- > position + 1;) move(i, i + more);
    for (uint64_t i = 0; i < parts.size(); ++i) set_entry(position + i, parts[i]);
    count_.store(count + more, std::memory_order_release);
    close_after_change();
    OC_ASSERT(is_valid());
  }
  wait_for_users(old, while_held);
  return {};
}

View* AddressMap::find_and_hold(const std::byte* address) {
  for (;;) {
    const uint64_t before = sequence_.load(std::memory_order_acquire);
    if ((before & 1) != 0) {
      os::yield();
      continue;
    }
    const uint64_t position = position_of(address);
    View* view = nullptr;
    if (position < count_.load(std::memory_order_acquire) &&
        entry_[position].start.load(std::memory_order_acquire) <= address)
      view = entry_[position].view.load(std::memory_order_acquire);
    // A view that is being removed may be freed, so the count is kept only if the sequence says
    // that the view was still in the table. Views are in memory that is never freed (ViewPool), so
    // it is always safe to change the count.
    if (view != nullptr) view->users.fetch_add(1, std::memory_order_seq_cst);
    if (sequence_.load(std::memory_order_seq_cst) == before) {
      // The view that a forked child inherited covers all reserved addresses, even past the end
      // that the region had at the fork, because the kernel's mapping may show them by now.
      if (view == nullptr || view->contains(address) || view->is_inherited.load()) return view;
      release(view);
      return nullptr;
    }
    if (view != nullptr) release(view);
  }
}

void AddressMap::forget_in_child(View& view) {
  const uint64_t count = count_.load(), position = position_of(view.address);
  if (position >= count || entry_[position].view.load() != &view) return;
  open_for_change();
  for (uint64_t i = position; i + 1 < count; ++i) move(i + 1, i);
  count_.store(count - 1, std::memory_order_release);
  close_after_change();
}

void AddressMap::forget_inherited(const std::byte* address, uint64_t size_bytes) {
  const os::SignalBlock block;
  const os::Locked locked(writers_);
  for_each([&](View& view) {
    if (view.is_inherited && view.address >= address && view.address < address + size_bytes)
      forget_in_child(view);
  });
}

void AddressMap::for_each(const std::function<void(View&)>& f) {
  for (uint64_t i = count_.load(std::memory_order_acquire); i-- > 0;)
    if (View* view = entry_[i].view.load(std::memory_order_acquire); view != nullptr) f(*view);
}

bool AddressMap::overlaps(const std::byte* address, uint64_t size_bytes) {
  const os::SignalBlock block;
  const os::Locked locked(writers_);
  const uint64_t position = position_of(address);
  if (position >= count_.load()) return false;
  // Compare as integers: the program may pass any address.
  const auto first = reinterpret_cast<uintptr_t>(address);
  const auto start = reinterpret_cast<uintptr_t>(entry_[position].start.load());
  return start <= first || start - first < size_bytes;
}

bool AddressMap::is_valid() {
  const uint64_t count = count_.load();
  for (uint64_t i = 0; i < count; ++i) {
    if (entry_[i].start.load() >= entry_[i].end.load()) return false;
    if (i > 0 && entry_[i - 1].end.load() > entry_[i].start.load()) return false;
  }
  return true;
}

}  // namespace outcore::region
