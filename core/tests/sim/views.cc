// Views and flushes in a simulation, as in core/runtime/mapping.cc.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/region/address_map.h"
#include "core/region/view_pool.h"
#include "core/tests/sim/simulation.h"

namespace outcore::sim {

using region::AddressMap;
using region::View;
using region::ViewPool;

Status Simulation::map_view(SimFile& file, uint64_t offset, uint64_t size_bytes,
                            uint64_t reserved_bytes, bool is_writable) {
  const os::Locked locked(mapping_);
  if (file.is_handed_back) return Error{EBUSY, "it is the kernel's"};
  paging::PageCache& cache = *file.cache;
  if (!file.views.empty() && !cache.frames->can_share()) {
    auto frames = std::make_unique<SimFrames>(kernel_, FramesModel::kShared,
                                              cache.page_count() * cache.page_bytes);
    if (Status s = engine_->replace_frames(cache, std::move(frames)); !s) return s;
  }
  View* view = ViewPool::instance().allocate();
  view->address = next_address_;
  next_address_ += base::round_up(reserved_bytes, 1 << 20) + (1 << 20);
  view->offset = offset;
  view->size_bytes = size_bytes;
  view->reserved_bytes = base::round_up(reserved_bytes, base::kSystemPage);
  view->is_writable = is_writable;
  view->on_error = OnError::kSignal;
  view->advice = Advice::kNormal;
  if (Status s = engine_->add_view(cache, view); !s) return s;
  file.views.push_back(std::make_unique<SimView>());
  SimView& mapped = *file.views.back();
  mapped.view = view;
  mapped.address = view->address;
  mapped.offset = offset;
  mapped.size_bytes = view->mapped_bytes();
  mapped.is_writable = is_writable;
  return {};
}

void Simulation::unmap_view(SimFile& file, SimView* leaving) {
  const os::Locked locked(mapping_);
  size_t index = 0;
  while (index < file.views.size() && file.views[index].get() != leaving) ++index;
  if (index == file.views.size()) return;                 // another fiber was faster
  if (file.is_handed_back || leaving->is_used()) return;  // or pinned meanwhile
  // Removed from the list first, so that programs no longer touch it.
  std::unique_ptr<SimView> ending = std::move(file.views[index]);
  file.views.erase(file.views.begin() + static_cast<ptrdiff_t>(index));
  View* view = ending->view;
  Status flushed = flush(file, view->first_page(), view->end_page());
  while (!flushed.ok()) {
    fibers_.require(plan_.has_faults, "a flush fails though the store does not");
    fibers_.let_pass(100'000);
    flushed = flush(file, view->first_page(), view->end_page());
  }
  // If no other view shows its pages, they are dropped together with the view.
  const uint64_t from = view->first_page(), to = view->end_page();
  const bool must_empty = file.cache->view_count > 1 && !file.cache->frames->can_share();
  while (must_empty && !engine_->evict_and_block(*file.cache, from, to).ok()) {
    fibers_.require(plan_.has_faults, "a view's pages cannot be held out though nothing fails");
    fibers_.let_pass(100'000);
  }
  if (must_empty) view->is_replaced = true;
  AddressMap::instance().remove(view);
  kernel_.for_each_mapping(view->address, view->reserved_bytes,
                           [](Mapping& mapping) { mapping.is_ending = true; });
  if (file.cache->view_count == 1) engine_->drop_frames(*file.cache);
  engine_->remove_view(view);
  if (must_empty) engine_->unblock(*file.cache, from, to);
  kernel_.unmap(view->address, view->reserved_bytes);
  ViewPool::instance().free(view);
}

// After a successful flush, the store has everything that was written before it.
Status Simulation::flush(SimFile& file, uint64_t first, uint64_t end) {
  const uint64_t begun_at = ++events_;
  ++tally_.flushes;
  const Status flushed = engine_->flush(*file.cache, first, end);
  if (!flushed.ok()) {
    ++tally_.flush_errors;
    fibers_.require(plan_.has_faults, "a flush fails though the store does not");
    return flushed;
  }
  for (uint64_t i = 0; i < file.oracle->cell_count(); ++i) {
    const Cell& cell = file.oracle->cell(i);
    const uint64_t page = file.oracle->page_of(i);
    const PageUse& use = file.oracle->use_of_page(page);
    if (page < first || page >= end || cell.changed_at >= begun_at) continue;
    if (use.is_discarded || use.is_undefined) continue;
    const uint64_t offset = Oracle::offset_of(i);
    if (file.store->torn_since(offset / base::kSystemPage) > begun_at) continue;
    uint64_t stored = 0;
    std::memcpy(&stored, file.store->bytes().data() + offset, sizeof stored);
    fibers_.require(stored == cell.value, "a flush succeeds, and the store lacks what was written",
                    offset, stored);
  }
  return {};
}

}  // namespace outcore::sim
