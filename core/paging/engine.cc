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

namespace {

// Pages that must fit beside the buffers, so that a fill, the pages ahead and a batch on its way
// out can coexist.
constexpr uint64_t kPagesLeast = 8;
constexpr uint64_t kBudgetLeast = 256 << 10;

uint64_t write_buffer_bytes(uint64_t budget_bytes, unsigned keepers) {
  return std::clamp<uint64_t>(base::round_down(budget_bytes / 32 / keepers, base::kSystemPage),
                              16 << 10, 1 << 20);
}

}  // namespace

Engine::Engine(const EngineOptions& options)
    : options_(options),
      budget_(options.budget_bytes),
      lending_(std::make_shared<Lending>(*this)) {}

Result<std::unique_ptr<Engine>> Engine::start(const EngineOptions& options) {
  std::unique_ptr<Engine> engine(new Engine(options));
  if (Status s = engine->prepare(); !s) return s.error();
  return engine;
}

Status Engine::prepare() {
  OC_CHECK(options_.keepers != 0);
  OC_CHECK(options_.low_watermark <= options_.high_watermark);
  OC_CHECK(options_.high_watermark <= 100);
  const uint64_t buffers = write_buffer_bytes(options_.budget_bytes, options_.keepers);
  const budget::BouncePool::Shape shape = budget::BouncePool::shape_for(options_.budget_bytes);
  const uint64_t fixed = shape.total_bytes() + options_.keepers * buffers;
  if (options_.budget_bytes < kBudgetLeast || fixed > options_.budget_bytes / 2) {
    const uint64_t least = std::max(kBudgetLeast, 2 * options_.keepers * uint64_t{64 << 10});
    return Error{EINVAL, "a budget of " + format_bytes(options_.budget_bytes) +
                             " is too small for " + std::to_string(options_.keepers) +
                             " keeper(s): the least that would do is " + format_bytes(least)};
  }
  if (Status s = bounce_.allocate(shape); !s) return s;
  if (Status s = frames_.allocate(
          static_cast<uint32_t>(std::min<uint64_t>(options_.frames_max, 0xFFFFFFF0)));
      !s)
    return s;
  if (Status s = spaces_.allocate(kSpacesMax); !s) return s;
  if (Status s = spare_.allocate(2 * base::kSystemPage); !s) return s;
  OC_CHECK(budget_.take(fixed));
  for (unsigned i = 0; i < options_.keepers; ++i) {
    auto shard = std::make_unique<Shard>();
    const uint64_t capacity = options_.budget_bytes / base::kSystemPage / options_.keepers;
    Result<std::unique_ptr<Policy>> policy =
        make_policy(options_.policy, frames_.count(), capacity);
    if (!policy) return policy.error();
    shard->policy = std::move(policy).value();
    policy_wants_rescue_ = shard->policy->leaving_target() > 0;
    Result<std::byte*> buffer = os::allocate_table(buffers);
    if (!buffer) return buffer.error();
    shard->write_buffer = buffer.value();
    shard->write_buffer_bytes = buffers;
    shards_.push_back(std::move(shard));
  }
  if (options_.has_threads) {
    try {
      start_threads();
    } catch (const std::system_error& e) {
      return base::system_error(e.code().value(), "start a thread of the runtime",
                                "ask for fewer keepers or prefetch_threads, or raise ulimit -u");
    }
  }
  return {};
}

void Engine::start_threads() {
  const os::SignalBlock block;  // inherited: no signal of the program runs on our threads
  for (const auto& shard : shards_)
    threads_.emplace_back([this, s = shard.get()] { keep_loop(*s); });
  for (unsigned i = 0; i < options_.prefetch_threads; ++i)
    threads_.emplace_back([this] { io_loop(); });
}

Engine::~Engine() {
  lending_->end();
  is_stopping_ = true;
  for (const auto& shard : shards_) {
    shard->is_called = 1;
    os::wake_all(&shard->is_called);
  }
  queue_.wake_everybody();
  for (std::thread& thread : threads_) thread.join();
  for (uint32_t i = 0; i < spaces_end_; ++i) OC_CHECK(spaces_[i].load() == nullptr);
}

Shard& Engine::shard_of(const Space& space, uint64_t page) {
  OC_ASSERT(page < space.page_count());
  if (shards_.size() == 1) return *shards_[0];
  // Stretches of 8 MiB stay together, so that neighbours are evicted and written back together.
  const uint64_t stretch = page * space.page_bytes >> 23;
  return *shards_[(stretch * 0x9E3779B97F4A7C15ull + space.id) % shards_.size()];
}

uint64_t Engine::least_budget(uint64_t page_bytes) const {
  const uint64_t fixed =
      bounce_.shape().total_bytes() +
      options_.keepers * write_buffer_bytes(options_.budget_bytes, options_.keepers);
  return fixed + (kPagesLeast + options_.prefetch_threads) * page_bytes;
}

Status Engine::add_space(Space* space) {
  OC_CHECK(base::is_power_of_two(space->page_bytes));
  OC_CHECK(space->page_bytes >= base::kSystemPage);
  OC_CHECK(space->page_bytes <= base::kPageBytesMax);
  OC_CHECK(space->store.load() != nullptr);
  OC_CHECK(space->engine == nullptr);
  const uint64_t least = least_budget(space->page_bytes);
  if (least > budget_.limit())
    return Error{EINVAL, "map " + space->uri + ": the budget of " + format_bytes(budget_.limit()) +
                             " is too small for pages of " + format_bytes(space->page_bytes) +
                             "; the least that would do is " + format_bytes(least)};
  if (Status s = space->views.allocate(Space::kViewsMax); !s) return s;
  const os::SignalBlock block;
  const os::Locked locked(spaces_lock_);
  uint32_t id = 0;
  while (id < kSpacesMax && spaces_[id].load() != nullptr) ++id;
  if (id == kSpacesMax)
    return Error{ENOMEM, "map " + space->uri + ": a runtime can have at most 1048576 stores"};
  space->id = id;
  space->engine = this;
  if (auto* lodger = dynamic_cast<store::Lodger*>(space->store.load()); lodger != nullptr)
    lodger->use_room(lending_);
  spaces_[id].store(space, std::memory_order_release);
  if (id >= spaces_end_) spaces_end_ = id + 1;
  uint64_t largest = page_bytes_max_.load();
  while (space->page_bytes > largest &&
         !page_bytes_max_.compare_exchange_weak(largest, space->page_bytes)) {
  }
  return {};
}

void Engine::drop_frames(Space& space) {
  const os::SignalBlock block;
  const bool is_by_page = space.page_count() <= 4 * uint64_t{frames_.used_once()};
  while (space.resident_bytes.load() != 0) {
    for (const auto& shard : shards_) {
      const os::Locked turn(shard->turn);
      const uint64_t end = is_by_page ? space.page_count() : frames_.used_once();
      for (uint64_t i = 0; i < end;) {
        Eviction eviction(*this, *shard, Caller::kThread);
        eviction.hear();
        uint64_t busy = 0;
        for (; i < end && !eviction.is_full(); ++i) {
          uint64_t page = i;
          if (!is_by_page) {  // it may be changing hands: another's page is not ours to look at
            budget::FrameRecord& record = frames_[static_cast<uint32_t>(i)];
            if (std::atomic_ref(record.space).load() != space.id) continue;
            page = std::atomic_ref(record.page).load();
            if (page >= space.page_count()) continue;
          }
          const PageValue seen = space.words[page].load();
          if (seen.state() == PageState::kAbsent) continue;
          if (seen.pins() != 0) {  // the region goes, and its pins with it
            const uint64_t pinned = pinned_bytes_.fetch_sub(space.page_bytes);
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
  OC_CHECK(space_of(space->id) == space);
  const os::SignalBlock block;
  // Whoever holds a turn may be looking at it.
  for (const auto& shard : shards_) {
    const os::Locked turn(shard->turn);
    Eviction(*this, *shard, Caller::kThread).hear();
  }
  const os::Locked locked(spaces_lock_);
  spaces_[space->id].store(nullptr, std::memory_order_release);
}

Status Engine::add_view(Space& space, View* view) {
  OC_CHECK(view->offset % base::kSystemPage == 0);
  OC_CHECK(reinterpret_cast<uintptr_t>(view->address) % base::kSystemPage == 0);
  OC_CHECK(view->mapped_bytes() <= view->reserved_bytes);
  OC_CHECK(space_of(space.id) == &space);
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
  const os::Locked locked(spaces_lock_);
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
  for (const auto& shard : shards_) {  // after each of their turns nobody who evicts looks at it
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
  for_each_framed(space, first, end, [&](uint64_t page) {
    const auto is_looked_at = [&] {
      const PageValue seen = space.words[page].load();
      return seen.state() == PageState::kBusy || seen.state() == PageState::kFrozen ||
             seen.has(PageValue::kWriting);
    };
    while (is_looked_at()) os::yield();
  });
}

// Calls f for every page of [first, end) that has a frame, and perhaps for others, whichever is
// quicker.
void Engine::for_each_framed(const Space& space, uint64_t first, uint64_t end,
                             const std::function<void(uint64_t)>& f) {
  end = std::min(end, space.page_count());
  if (first >= end) return;
  if (end - first <= frames_.used_once()) {
    for (uint64_t page = first; page < end; ++page) f(page);
    return;
  }
  for (uint32_t frame = 0; frame < frames_.used_once(); ++frame) {
    budget::FrameRecord& record = frames_[frame];
    if (std::atomic_ref(record.space).load() != space.id) continue;
    const uint64_t page = std::atomic_ref(record.page).load();
    if (page >= first && page < end) f(page);
  }
}

std::vector<std::span<std::byte>> Engine::buffers() const {
  std::vector<std::span<std::byte>> all{bounce_.memory()};
  for (const auto& shard : shards_) all.push_back({shard->write_buffer, shard->write_buffer_bytes});
  return all;
}

uint64_t Engine::metadata_bytes() const {
  uint64_t bytes = frames_.touched_bytes();
  for (const auto& shard : shards_) bytes += shard->policy->metadata_bytes();
  for (uint32_t i = 0; i < spaces_end_; ++i) {
    const Space* space = spaces_[i].load();
    if (space != nullptr) bytes += space->words.touched();
  }
  return bytes;
}

void Engine::add_to(Metrics& metrics) const {
  const uint64_t total = budget_bytes(), used = budget_.used() + lent_bytes_.load();
  metrics.gauges.budget_bytes = total;
  metrics.gauges.used_bytes = lent_bytes_.load() == 0 ? used : std::min(used, total);
  metrics.gauges.used_bytes_max = std::max(budget_.used_max(), metrics.gauges.used_bytes);
  metrics.gauges.bounce_bytes =
      bounce_.shape().total_bytes() +
      options_.keepers * write_buffer_bytes(options_.budget_bytes, options_.keepers);
  metrics.gauges.metadata_bytes = metadata_bytes();
}

bool Engine::is_valid() const {
  uint64_t resident = 0;
  for (uint32_t i = 0; i < spaces_end_; ++i)
    if (const Space* space = spaces_[i].load(); space != nullptr)
      resident += space->resident_bytes.load();
  return resident <= budget_.used() && region::AddressMap::instance().is_valid();
}

}  // namespace outcore::paging
