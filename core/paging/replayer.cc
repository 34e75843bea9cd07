#include "core/paging/replayer.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "core/base/assert.h"
#include "core/os/unseen_by_tsan.h"
#include "core/region/address_map.h"

namespace outcore::paging {

using metrics::Counter;
using prefetch::kTouchUnitBytes;
using region::AddressMap;
using region::View;

namespace {

// The most stretches that one unit gives: every second of its pages, as a buffer has four at least.
constexpr size_t kStretchesOfUnit = prefetch::kPartsOfUnit / 2;

// A system page alone has small buffers, of which there are many.
bool is_single_page(uint64_t pages, uint64_t page_bytes) {
  return pages == 1 && page_bytes == base::kSystemPage;
}

}  // namespace

Replayer::Replay::Replay(const View& view, uint64_t from_byte, uint64_t to_byte,
                         std::shared_ptr<const std::string> of)
    : cache(view.cache),
      address(view.address),
      offset(view.offset),
      from(from_byte),
      to(to_byte),
      page_bytes(view.page_bytes),
      touches(std::move(of)),
      reader(*touches) {
  OC_CHECK(offset <= from);
  OC_CHECK(from <= to);
  OC_CHECK(base::is_power_of_two(page_bytes));
}

Replayer::~Replayer() { OC_CHECK(!thread_.joinable()); }

Status Replayer::start(const View& view, uint64_t from, uint64_t to,
                       std::shared_ptr<const std::string> touches) {
  OC_CHECK(view.cache != nullptr);
  OC_CHECK(touches != nullptr);
  OC_CHECK(to <= view.offset + view.mapped_bytes());
  if (from >= to || touches->empty() || !pager_.options.has_threads) return {};
  auto replay = std::make_shared<Replay>(view, from, to, std::move(touches));
  const os::Locked locked(lock_);
  if (replays_.size() == kReplaysMax)
    return Error{EAGAIN, "bring in ahead: too many regions wait for it"};
  try {
    if (!thread_.joinable()) thread_ = os::unseen_thread([this] { run(); });
  } catch (const std::system_error& e) {
    return Error{EAGAIN, std::string("bring in ahead: no thread could be started: ") + e.what()};
  }
  skipped_.reserve(kReplaysMax);  // our thread must not run out of memory
  replays_.push_back(std::move(replay));
  count_.store(static_cast<uint32_t>(replays_.size()), std::memory_order_release);
  changes_.fetch_add(1, std::memory_order_seq_cst);
  os::wake_all(&changes_);
  return {};
}

bool Replayer::forget(const PageCache& cache) {
  OC_CHECK(cache.view_count.load() == 0);
  const os::SignalBlock block;
  size_t cut_off = 0;
  {
    const os::Locked locked(lock_);
    cut_off = std::erase_if(replays_, [&](const auto& replay) { return replay->cache == &cache; });
    count_.store(static_cast<uint32_t>(replays_.size()), std::memory_order_release);
  }
  // It finds no view any more: another cache could have the same address in memory later.
  while (busy_.load(std::memory_order_acquire) == &cache) os::yield();
  const os::Locked locked(lock_);
  return std::erase(skipped_, &cache) + cut_off != 0;
}

void Replayer::stop() {
  OC_CHECK(pager_.is_stopping.load());
  changes_.fetch_add(1, std::memory_order_seq_cst);
  os::wake_all(&changes_);
  if (thread_.joinable()) thread_.join();
}

void Replayer::run() {
  while (!pager_.is_stopping.load(std::memory_order_acquire)) {
    const uint32_t seen = changes_.load(std::memory_order_seq_cst);
    if (!run_one()) os::wait(&changes_, seen, 1'000'000'000);
  }
}

// One batch of the replay that waits longest: those of several regions go on by turns, as the
// program needed them. False: there is none.
bool Replayer::run_one() {
  std::shared_ptr<Replay> replay;
  {
    const os::Locked locked(lock_);
    if (replays_.empty()) return false;
    std::rotate(replays_.begin(), replays_.begin() + 1, replays_.end());
    replay = replays_.back();
    busy_.store(replay->cache, std::memory_order_release);
  }
  Batch batch;
  gather(*replay, &batch);
  if (batch.count == 0)
    end(replay);
  else if (!bring_in(*replay, {batch.stretch, batch.count}))
    end_all();
  busy_.store(nullptr, std::memory_order_release);
  return true;
}

void Replayer::end(const std::shared_ptr<Replay>& replay) {
  const os::Locked locked(lock_);
  if (replay->has_skipped && skipped_.size() < kReplaysMax) skipped_.push_back(replay->cache);
  std::erase(replays_, replay);
  count_.store(static_cast<uint32_t>(replays_.size()), std::memory_order_release);
}

void Replayer::end_all() {
  const os::Locked locked(lock_);
  replays_.clear();
  count_.store(0, std::memory_order_release);
}

// The pages that come next, as many as a batch may have; none: at the end.
void Replayer::gather(Replay& replay, Batch* batch) const {
  const uint64_t first_unit = replay.from / kTouchUnitBytes;
  const uint64_t end_unit = (replay.to + kTouchUnitBytes - 1) / kTouchUnitBytes;
  prefetch::TouchRun& rest = replay.rest;
  while (batch->count + kStretchesOfUnit <= Batch::kStretchesMax &&
         batch->pages * replay.page_bytes < kBatchBytesMax) {
    if (rest.units == 0 && !replay.reader.next(&rest)) break;
    if (rest.first < first_unit) {
      const uint64_t skipped = std::min<uint64_t>(rest.units, first_unit - rest.first);
      rest.first += static_cast<uint32_t>(skipped);
      rest.units -= static_cast<uint32_t>(skipped);
    }
    if (rest.first >= end_unit) rest.units = 0;
    if (rest.units == 0) continue;
    add_unit(replay, {rest.first, rest.parts}, batch);
    ++rest.first;
    --rest.units;
  }
}

void Replayer::add_unit(Replay& replay, prefetch::Touch unit, Batch* batch) const {
  OC_ASSERT(unit.parts != 0);
  const uint64_t start = unit.unit * kTouchUnitBytes;
  const uint64_t pages_max =
      std::max<uint64_t>(pager_.bounce.shape().chunk_bytes / replay.page_bytes, 1);
  for (uint32_t part = 0, end = 0; part < prefetch::kPartsOfUnit; part = end) {
    const bool is_needed = (unit.parts >> part & 1) != 0;
    for (end = part + 1; end < prefetch::kPartsOfUnit; ++end)
      if (((unit.parts >> end & 1) != 0) != is_needed) break;
    const uint64_t from = std::max(start + part * base::kSystemPage, replay.from);
    const uint64_t to = std::min(start + end * base::kSystemPage, replay.to);
    if (!is_needed || from >= to) continue;
    uint64_t page = from / replay.page_bytes;
    const uint64_t end_page = (to - 1) / replay.page_bytes + 1;
    if (page == replay.last_page) ++page;  // a large one, of which another part was needed as well
    while (page < end_page) {
      const Stretch* const before = batch->count == 0 ? nullptr : &batch->stretch[batch->count - 1];
      if (before == nullptr || before->end != page || page - before->first >= pages_max) {
        OC_CHECK(batch->count < Batch::kStretchesMax);
        batch->stretch[batch->count++] = {page, page};
      }
      Stretch& last = batch->stretch[batch->count - 1];
      last.end = std::min(end_page, last.first + pages_max);
      batch->pages += last.end - page;
      page = last.end;
      replay.last_page = page - 1;
    }
  }
}

// False: there is no room for more.
bool Replayer::bring_in(Replay& replay, std::span<const Stretch> stretches) {
  while (!stretches.empty()) {
    size_t count = 1;
    const uint64_t offset = std::max(stretches[0].first * replay.page_bytes, replay.from);
    const std::byte* const address = replay.address + (offset - replay.offset);
    View* const view = AddressMap::instance().find_and_hold(address);
    if (view == nullptr) replay.has_skipped = true;
    if (view != nullptr) {
      bool is_room_left = true;
      // Something else may be mapped there by now, or a part of what was.
      if (view->cache == replay.cache &&
          view->offset + static_cast<uint64_t>(address - view->address) == offset) {
        while (count < stretches.size() && stretches[count].first >= view->first_page() &&
               stretches[count].end <= view->end_page())
          ++count;
        const std::span<const Stretch> here = stretches.first(count);
        is_room_left = fill(*view, here, true) && fill(*view, here, false);
      }
      AddressMap::release(view);
      if (!is_room_left) return false;
    }
    stretches = stretches.subspan(count);
  }
  return true;
}

// Single pages and longer stretches travel through buffers of different sizes; of neither all are
// taken, or those who fault would wait for them. False: there is no room for more.
bool Replayer::fill(View& view, std::span<const Stretch> stretches, bool are_single) {
  PageCache& cache = *view.cache;
  OC_CHECK(view.users.load() != 0);
  const budget::BouncePool::Shape& shape = pager_.bounce.shape();
  const uint32_t buffers = are_single ? shape.small_count : shape.chunk_count;
  const uint32_t buffers_max = std::max(buffers / 4, 1U);
  uint32_t gathered[kBatchBytesMax / base::kSystemPage];
  PageBatch batch(pager_, supply_, filler_, cache, view, Caller::kThread, Counter::prefetch_fills,
                  are_single ? base::kSystemPage : shape.chunk_bytes, gathered);
  bool is_room_left = true;
  uint32_t begun = 0;
  for (const Stretch& stretch : stretches) {
    OC_ASSERT(stretch.first < stretch.end);
    if (is_single_page(stretch.end - stretch.first, cache.page_bytes) != are_single) continue;
    if (begun == buffers_max) {
      batch.finish();
      begun = 0;
    }
    ++begun;
    uint64_t filled = 0;
    for (uint64_t page = stretch.first; page < stretch.end && is_room_left; ++page)
      is_room_left = fill_page(batch, cache, view, page, &filled);
    if (filled != 0) {
      runs_.fetch_add(1, std::memory_order_relaxed);
      bytes_.fetch_add(filled * cache.page_bytes, std::memory_order_relaxed);
      cache.counters.add(Counter::learnt_fills, filled);
    }
    if (!is_room_left) break;
  }
  batch.finish();
  return is_room_left;
}

// False: there is no room for more.
bool Replayer::fill_page(PageBatch& batch, PageCache& cache, View& view, uint64_t page,
                         uint64_t* filled) {
  if (page < view.first_page() || page >= view.end_page()) return true;
  if (!has_room(cache)) return false;
  if (!cache.claim(page)) return true;  // it is there, or its views are about to change
  if (!PageBatch::can_add(pager_, cache, view, page)) {
    batch.finish();  // whoever waits must hold no buffer
    if (filler_.fill(cache, view, page, false, Caller::kThread) == 0) ++*filled;
    return true;
  }
  uint32_t frame = budget::kNone;
  if (supply_.allocate_frame(cache, Caller::kThread, 0, &frame) != 0) {
    cache.abandon(page);
    return false;
  }
  batch.add(page, frame);
  ++*filled;
  return true;
}

bool Replayer::has_room(const PageCache& cache) const {
  if (pager_.is_stopping.load(std::memory_order_relaxed)) return false;
  const uint64_t limit = pager_.budget.limit();
  return pager_.budget.used() + cache.page_bytes <= limit - limit / kKeptShare &&
         cache.frames->mapping_headroom() == os::MappingHeadroom::kAmple;
}

}  // namespace outcore::paging
