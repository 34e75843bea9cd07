// Views that change their shape in a simulation, as in core/runtime/reshape.cc and `outcore run`:
// the program's calls on the file wait, its touches continue.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/region/address_map.h"
#include "core/region/view_pool.h"
#include "core/tests/sim/simulation.h"

namespace outcore::sim {

using region::AddressMap;
using region::View;
using region::ViewPool;

namespace {

bool has(const SimFile& file, const SimView& view) {
  return std::any_of(file.views.begin(), file.views.end(),
                     [&](const auto& mapped) { return mapped.get() == &view; });
}

void show(SimView& mapped, View* view) {
  mapped.view = view;
  mapped.address = view->address;
  mapped.offset = view->offset;
  mapped.size_bytes = view->mapped_bytes();
  mapped.is_writable = view->is_writable;
}

}  // namespace

// False: there is nothing left to reshape. REQUIRES: mapping_ is held.
bool Simulation::begin_reshape(SimFile& file) {
  if (file.is_handed_back) return false;
  file.is_reshaping = true;
  while (file.calls != 0) fibers_.let_pass(10'000);
  file.had_pins = file.pins != 0;
  return true;
}

void Simulation::end_reshape(SimFile& file, const Status& status, bool is_refusal_right) {
  file.is_reshaping = false;
  ++(status.ok() ? tally_.reshapes : tally_.refused_reshapes);
  if (status.ok() || is_refusal_right || plan_.has_faults) return;
  fibers_.fail("a change of views fails though nothing else does: " + status.message());
}

// Waits until all that began before have finished; those that begin now see the view as it is now.
void Simulation::wait_for_users(SimView& view) {
  const unsigned before = view.generation;
  view.generation = 1 - before;
  while (view.users[before] != 0) fibers_.let_pass(10'000);
}

// The store must contain what is not in memory. REQUIRES: the pages are evicted and blocked.
void Simulation::check_stored(SimFile& file, uint64_t from, uint64_t to, const char* what) {
  for (uint64_t i = 0; i < file.oracle->cell_count(); ++i) {
    const uint64_t offset = Oracle::offset_of(i);
    if (offset < from || offset + 8 > to || file.oracle->use_of(i).is_undefined) continue;
    uint64_t stored = 0;
    std::memcpy(&stored, file.store->bytes().data() + offset, sizeof stored);
    fibers_.require(stored == file.oracle->cell(i).value, what, offset, stored);
  }
}

void Simulation::check_hidden(std::byte* address, uint64_t bytes) {
  kernel_.for_each_mapping(address, bytes, [&](const Mapping& mapping) {
    for (const PageEntry& entry : mapping.entry)
      fibers_.require(!entry.is_present, "what is cut out is still shown", mapping.offset);
  });
}

void Simulation::cut_view(SimFile& file, SimView& whole, uint64_t from, uint64_t to) {
  const os::Locked locked(mapping_);
  if (!has(file, whole) || !begin_reshape(file)) return;
  paging::PageCache& cache = *file.cache;
  View* old = whole.view;
  const uint64_t end = old->reserved_bytes, offset = old->offset;
  if (whole.pins != 0 || to > end || (from == 0 && to == end) || (from == to && from % end == 0))
    return end_reshape(file, Error{EBUSY, "pinned, or not as it was"}, true);
  whole.closing_from = offset + from, whole.closing_to = offset + to;
  wait_for_users(whole);
  std::array<View*, 2> parts{};
  size_t count = 0;
  if (from > 0) parts[count++] = ViewPool::instance().allocate_part(*old, 0, from);
  if (to < end) parts[count++] = ViewPool::instance().allocate_part(*old, to, end);
  const bool is_page_cut =
      count == 2 && !cache.frames->can_share() && parts[1]->first_page() < parts[0]->end_page();
  const auto unmap = [&] {
    kernel_.divide(old->address + from);
    kernel_.divide(old->address + to);
    check_hidden(old->address + from, to - from);
    check_stored(file, offset + from, std::min(offset + to, whole.end()),
                 "the store lacks what was written to what is cut out");
    if (from < to) kernel_.unmap(old->address + from, to - from);
  };
  const Status s = engine_->swap_view(cache, old, {parts.data(), count}, unmap);
  whole.closing_from = whole.closing_to = 0;
  if (!s.ok()) {
    for (size_t i = 0; i < count; ++i) ViewPool::instance().free(parts[i]);
    return end_reshape(file, s, is_page_cut || file.had_pins);
  }
  show(whole, parts[0]);
  if (count == 2) {
    file.views.push_back(std::make_unique<SimView>());
    show(*file.views.back(), parts[1]);
  }
  ViewPool::instance().free(old);
  wait_for_users(whole);  // they may be in what is now the right part
  end_reshape(file, s, false);
}

// As `outcore run --alloc` does it. Who is refused touches all of it meanwhile.
void Simulation::give_view(SimFile& file, SimView& giving) {
  const os::Locked locked(mapping_);
  if (!has(file, giving) || !begin_reshape(file)) return;
  paging::PageCache& cache = *file.cache;
  View* const old = giving.view;
  const bool is_whole =
      old->offset % cache.page_bytes == 0 && old->reserved_bytes % cache.page_bytes == 0;
  if (&giving == file.views.front().get() || !is_whole || cache.shared != nullptr ||
      old->offset >= cache.store_bytes || giving.pins != 0)
    return end_reshape(file, Error{EBUSY, "the first, pinned, or no whole pages"}, true);
  const uint64_t dice = fibers_.random().below(4);  // 0: refused at once; 1: at the end
  if (dice > 1) {
    giving.closing_from = old->offset, giving.closing_to = old->offset + old->reserved_bytes;
    wait_for_users(giving);
  }
  const auto check = [&](bool is_refused) -> Status {
    check_hidden(old->address, old->reserved_bytes);
    check_stored(file, old->offset, giving.end(), "the store lacks what was given away");
    return is_refused ? Status(Error{ENOMEM, "no memory for a copy"}) : Status();
  };
  View* const twin = ViewPool::instance().allocate_part(*old, 0, old->reserved_bytes);
  View* shown = old;
  const Status s = engine_->give_view(
      cache, &shown, twin, [&] { return check(dice == 0); },
      [&] {
        const Status placed = check(dice == 1);
        if (placed.ok()) kernel_.unmap(old->address, old->reserved_bytes);
        return placed;
      });
  giving.closing_from = giving.closing_to = 0;
  fibers_.require(s.ok() == (shown == nullptr), "what was given away is still shown");
  if (shown != old) ViewPool::instance().free(old);
  if (shown != twin) ViewPool::instance().free(twin);
  if (shown != nullptr) {
    giving.view = shown;
    return end_reshape(file, s, dice <= 1 || file.had_pins);
  }
  const auto at = std::find_if(file.views.begin(), file.views.end(),
                               [&](const auto& mapped) { return mapped.get() == &giving; });
  const std::unique_ptr<SimView> ending = std::move(*at);
  file.views.erase(at);
  wait_for_users(*ending);
  end_reshape(file, s, false);
}

void Simulation::extend_view(SimFile& file, SimView& view, uint64_t size_bytes) {
  const os::Locked locked(mapping_);
  if (!has(file, view) || !begin_reshape(file)) return;
  size_bytes = std::min(size_bytes, view.view->reserved_bytes);
  if (size_bytes <= view.view->size_bytes) return end_reshape(file, {}, false);
  const Status s =
      engine_->extend_view(*file.cache, view.view, size_bytes, file.cache->store_bytes.load());
  if (s.ok()) view.size_bytes = view.view->mapped_bytes();
  end_reshape(file, s, file.had_pins);
}

// As a program's write() to a file that it has mapped.
void Simulation::write_to_store(SimFile& file, uint64_t first, uint64_t end, Random& random) {
  const os::Locked locked(mapping_);
  if (!begin_reshape(file)) return;
  const uint64_t from = first * file.plan.page_bytes;
  const uint64_t to = std::min(end * file.plan.page_bytes, file.plan.store_bytes);
  if (from >= to) return end_reshape(file, {}, true);
  const auto in_range = [&](const auto& f) {
    for (uint64_t i = 0; i < file.oracle->cell_count(); ++i)
      if (const uint64_t at = Oracle::offset_of(i); at >= from && at < to)
        f(file.oracle->cell(i), at);
  };
  const auto set_changing = [&](bool is_changing) {
    for (uint64_t page = first; page < end; ++page)
      file.oracle->use_of_page(page).is_overwritten = is_changing;
  };
  in_range([](Cell& cell, uint64_t) { cell.before = cell.value; });
  set_changing(true);
  const Status s = engine_->overwrite(*file.cache, from, to - from, [&] {
    check_stored(file, from, to, "the store lacks what was written to what is held out");
    in_range([&](Cell& cell, uint64_t at) {
      if (!random.chance(400)) return;
      cell.value = random.next();
      cell.changed_at = ++events_;
      file.store->preset(at, std::as_bytes(std::span(&cell.value, 1)));
      fibers_.step("write to the store", at);
    });
  });
  set_changing(false);
  end_reshape(file, s, file.had_pins);
}

// Replaces the views by the kernel's own mapping of the store. The kernel may have no room for it:
// then nothing changes.
void Simulation::hand_back(SimFile& file) {
  const os::Locked locked(mapping_);
  if (!begin_reshape(file)) return;
  if (file.pins != 0) return end_reshape(file, Error{EBUSY, "pinned"}, true);
  const bool is_refused = fibers_.random().chance(300);
  const Status s = engine_->hand_to_kernel(*file.cache, [&]() -> Status {
    if (is_refused) return Error{ENOMEM, "no mapping"};
    check_stored(file, 0, file.plan.store_bytes,
                 "the store lacks what was written to what is handed back");
    for (const auto& view : file.views) {
      kernel_.for_each_mapping(view->address, view->size_bytes, [&](const Mapping& mapping) {
        for (const PageEntry& entry : mapping.entry)
          fibers_.require(!entry.is_present, "what is handed back is still shown", mapping.offset);
      });
      kernel_.unmap(view->address, view->size_bytes);
    }
    file.is_handed_back = true;
    return {};
  });
  if (s.ok())
    for (const auto& view : file.views) {
      AddressMap::instance().remove(view->view);
      engine_->remove_view(view->view);
      ViewPool::instance().free(view->view);
      view->view = nullptr;
    }
  end_reshape(file, s, is_refused);
}

}  // namespace outcore::sim
