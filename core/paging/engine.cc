#include "core/paging/engine.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/paging/eviction.h"
#include "core/region/address_map.h"

namespace outcore::paging {

using base::format_bytes;
using region::PageState;
using region::PageValue;
using region::View;

Engine::Engine(const PagerOptions& options)
    : pager_(options),
      keeper_(pager_),
      supply_(pager_, keeper_),
      filler_(pager_, supply_),
      remapper_(pager_, queue_),
      prefetcher_(pager_, supply_, filler_, remapper_, queue_),
      readahead_(pager_, queue_, prefetcher_),
      fault_path_(pager_, supply_, filler_, remapper_, queue_, readahead_),
      fresh_pages_(pager_, supply_, filler_),
      flusher_(pager_),
      ranges_(pager_),
      discarder_(pager_),
      lending_(std::make_shared<Lending>(*this)) {}

Result<std::unique_ptr<Engine>> Engine::start(const PagerOptions& options) {
  std::unique_ptr<Engine> engine(new Engine(options));
  if (Status s = engine->pager_.allocate(); !s) return s.error();
  if (Status s = engine->filler_.allocate(); !s) return s.error();
  if (!options.has_threads) return engine;
  try {
    engine->start_threads();
  } catch (const std::system_error& e) {
    return base::system_error(e.code().value(), "start a thread of the runtime",
                              "ask for fewer keepers or prefetch_threads, or raise ulimit -u");
  }
  return engine;
}

void Engine::start_threads() {
  const os::SignalBlock block;  // inherited: no signal of the program runs on our threads
  for (const auto& shard : pager_.shards)
    threads_.emplace_back([this, s = shard.get()] { keeper_.run(*s); });
  for (unsigned i = 0; i < pager_.options.prefetch_threads; ++i)
    threads_.emplace_back([this] { prefetcher_.run(); });
}

Engine::~Engine() {
  lending_->end();
  pager_.is_stopping = true;
  for (const auto& shard : pager_.shards) {
    shard->is_called = 1;
    os::wake_all(&shard->is_called);
  }
  queue_.wake_everybody();
  for (std::thread& thread : threads_) thread.join();
}

Status Engine::add_space(Space* space) {
  OC_CHECK(base::is_power_of_two(space->page_bytes));
  OC_CHECK(space->page_bytes >= base::kSystemPage);
  OC_CHECK(space->page_bytes <= base::kPageBytesMax);
  OC_CHECK(space->store.load() != nullptr);
  OC_CHECK(space->fault_path == nullptr);
  const uint64_t least = pager_.least_budget(space->page_bytes);
  if (least > pager_.budget.limit())
    return Error{EINVAL, "map " + space->uri + ": the budget of " +
                             format_bytes(pager_.budget.limit()) + " is too small for pages of " +
                             format_bytes(space->page_bytes) + "; the least that would do is " +
                             format_bytes(least)};
  if (Status s = space->views.allocate(Space::kViewsMax); !s) return s;
  const os::SignalBlock block;
  const os::Locked locked(pager_.spaces_lock);
  uint32_t id = 0;
  while (id < Pager::kSpacesMax && pager_.spaces[id].load() != nullptr) ++id;
  if (id == Pager::kSpacesMax)
    return Error{ENOMEM, "map " + space->uri + ": a runtime can have at most 1048576 stores"};
  space->id = id;
  space->fault_path = &fault_path_;
  if (auto* lodger = dynamic_cast<store::Lodger*>(space->store.load()); lodger != nullptr)
    lodger->use_room(lending_);
  pager_.spaces[id].store(space, std::memory_order_release);
  if (id >= pager_.spaces_end) pager_.spaces_end = id + 1;
  uint64_t largest = pager_.page_bytes_max.load();
  while (space->page_bytes > largest &&
         !pager_.page_bytes_max.compare_exchange_weak(largest, space->page_bytes)) {
  }
  return {};
}

void Engine::drop_frames(Space& space) {
  const os::SignalBlock block;
  const bool is_by_page = space.page_count() <= 4 * uint64_t{pager_.frames.used_once()};
  while (space.resident_bytes.load() != 0) {
    for (const auto& shard : pager_.shards) {
      const os::Locked turn(shard->turn);
      const uint64_t end = is_by_page ? space.page_count() : pager_.frames.used_once();
      for (uint64_t i = 0; i < end;) {
        Eviction eviction(pager_, *shard, Caller::kThread);
        eviction.hear();
        uint64_t busy = 0;
        for (; i < end && !eviction.is_full(); ++i) {
          uint64_t page = i;
          if (!is_by_page) {  // it may be changing hands: another's page is not ours to look at
            budget::FrameRecord& record = pager_.frames[static_cast<uint32_t>(i)];
            if (std::atomic_ref(record.space).load() != space.id) continue;
            page = std::atomic_ref(record.page).load();
            if (page >= space.page_count()) continue;
          }
          const PageValue seen = space.words[page].load();
          if (seen.state() == PageState::kAbsent) continue;
          if (seen.pins() != 0) {  // the region goes, and its pins with it
            const uint64_t pinned = pager_.pinned_bytes.fetch_sub(space.page_bytes);
            OC_CHECK(pinned >= space.page_bytes);
            space.words[page].update(
                [](PageValue v) { return v.with_pins(0).minus(PageValue::kParked); });
          }
          eviction.take_page(space, page, &busy);
        }
        eviction.clean(Bytes::kDrop);
        eviction.free();
      }
    }
    if (space.resident_bytes.load() == 0) return;
    // A late prefetch or write-back still holds a page; or the program has locked the memory.
    for (uint32_t i = 0; i < space.views_end.load(std::memory_order_acquire); ++i)
      if (const View* view = space.views[i].load(); view != nullptr)
        space.frames->unlock(
            {view->address, view->offset, view->mapped_bytes(), view->is_writable, 0});
    os::yield();
  }
}

void Engine::remove_space(Space* space) {
  OC_CHECK(space->resident_bytes.load() == 0);
  OC_CHECK(space->view_count.load() == 0);
  OC_CHECK(pager_.space_of(space->id) == space);
  const os::SignalBlock block;
  // Whoever holds a turn may be looking at it.
  for (const auto& shard : pager_.shards) {
    const os::Locked turn(shard->turn);
    Eviction(pager_, *shard, Caller::kThread).hear();
  }
  const os::Locked locked(pager_.spaces_lock);
  pager_.spaces[space->id].store(nullptr, std::memory_order_release);
}

Status Engine::add_view(Space& space, View* view) {
  OC_CHECK(view->offset % base::kSystemPage == 0);
  OC_CHECK(reinterpret_cast<uintptr_t>(view->address) % base::kSystemPage == 0);
  OC_CHECK(view->mapped_bytes() <= view->reserved_bytes);
  OC_CHECK(pager_.space_of(space.id) == &space);
  view->space = &space;
  view->page_bytes = space.page_bytes;
  if (space.frames->can_share()) {
    const uint64_t pages =
        (view->offset + view->reserved_bytes) / space.page_bytes + 1 - view->first_page();
    if (Status s = view->shown.allocate((pages + 63) / 64 + 1); !s) return s;
  }
  if (view->mapped_bytes() != 0)
    if (Status s = space.frames->attach(
            {view->address, view->offset, view->mapped_bytes(), view->is_writable, 0});
        !s)
      return s;
  const os::SignalBlock block;
  if (Status s = put_view(space, view); !s) return s;
  return region::AddressMap::instance().add(view);
}

Status Engine::put_view(Space& space, View* view) {
  const os::Locked locked(pager_.spaces_lock);
  uint32_t slot = 0;
  while (slot < Space::kViewsMax && space.views[slot].load() != nullptr) ++slot;
  if (slot == Space::kViewsMax)
    return Error{ENOMEM, "map " + space.uri + ": a store can have at most 65536 regions"};
  space.views[slot].store(view, std::memory_order_release);
  const uint32_t before = space.view_count.fetch_add(1);
  OC_CHECK(before < Space::kViewsMax);
  if (slot >= space.views_end) space.views_end.store(slot + 1, std::memory_order_release);
  return {};
}

void Engine::remove_view(View* view) {
  Space& space = *static_cast<Space*>(view->space);
  const os::SignalBlock block;
  forget_view(space, view);
  space.frames->detach({view->address, view->offset, view->mapped_bytes(), view->is_writable, 0});
}

// Afterwards nobody who evicts or writes back looks at it. With signals blocked.
void Engine::forget_view(Space& space, View* view) {
  uint32_t slot = 0;
  while (slot < space.views_end && space.views[slot].load() != view) ++slot;
  const uint32_t before = slot < space.views_end ? space.view_count.fetch_sub(1) : 1;
  OC_CHECK(before != 0);
  for (const auto& shard :
       pager_.shards) {  // after each of their turns nobody who evicts looks at it
    const os::Locked turn(shard->turn);
    View* expected = view;
    if (slot < space.views_end) space.views[slot].compare_exchange_strong(expected, nullptr);
  }
  if (space.view_count > 0) wait_for_lookers(space, 0, space.page_count());
  while (space.retries.load(std::memory_order_seq_cst) != 0) os::yield();
}

// A page may be Busy or written back through some view, and that thread looks at all that show it:
// those holds are short. Afterwards whoever looks at views of these pages, but for who has a turn,
// has begun after the call did.
void Engine::wait_for_lookers(const Space& space, uint64_t first, uint64_t end) {
  pager_.for_each_framed(space, first, end, [&](uint64_t page) {
    const auto is_looked_at = [&] {
      const PageValue seen = space.words[page].load();
      return seen.state() == PageState::kBusy || seen.state() == PageState::kFrozen ||
             seen.has(PageValue::kWriting);
    };
    while (is_looked_at()) os::yield();
  });
}

void Engine::add_to(Metrics& metrics) const {
  const uint64_t total = budget_bytes(), used = pager_.budget.used() + lent_bytes_.load();
  metrics.gauges.budget_bytes = total;
  metrics.gauges.used_bytes = lent_bytes_.load() == 0 ? used : std::min(used, total);
  metrics.gauges.used_bytes_max = std::max(pager_.budget.used_max(), metrics.gauges.used_bytes);
  metrics.gauges.bounce_bytes = pager_.buffer_bytes();
  metrics.gauges.metadata_bytes = pager_.metadata_bytes();
}

}  // namespace outcore::paging
