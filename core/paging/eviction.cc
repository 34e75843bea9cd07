#include "core/paging/eviction.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::paging {

using budget::FrameRecord;
using budget::kNone;
using metrics::Counter;
using os::Piece;
using region::PageState;
using region::PageValue;
using region::PageWord;
using region::View;

namespace {

// What a page costs that is in memory and was unmapped only to see whether it is touched, if it is:
// half of it the unmapping, while another thread runs, and half the fault.
constexpr uint64_t kProbeNs = 25'000;

// The same beside a miss.
uint32_t probe_price_of(const PageCache& cache) {
  if (cache.frames->leaving_is_readable()) return Policy::kNoProbes;
  const uint64_t miss_ns = std::max<uint64_t>(cache.fetches.cost.miss_ns(), 1);
  const uint64_t price = Policy::kMissPrice * kProbeNs / miss_ns;
  return static_cast<uint32_t>(std::clamp<uint64_t>(price, 1, 8 * Policy::kMissPrice));
}

// At rest: unmapped, and everything that was written of it is stored.
bool is_at_rest(const PageValue& seen) {
  return seen.state() == PageState::kLeaving && !seen.has(PageValue::kWriting);
}

}  // namespace

// Resident → Unmapping, if nobody has it. Pinned pages leave the policy until the last unpin.
bool Eviction::add_victim(uint32_t frame, bool was_chosen) {
  FrameRecord& record = frames_[frame];
  PageCache& cache = *pager_.cache_of(record.cache);
  OC_CHECK(shard_.victim_count < Shard::kVictimsMax);
  OC_CHECK(record.page < cache.page_count());
  PageWord& word = cache.words[record.page];
  PageValue seen = word.load();
  if (record.list == kProbedList) {
    // Touched a moment ago, and in the inbox: it stays until the policy has been told of that.
    if (!was_chosen || !is_at_rest(seen)) {
      if (was_chosen) victims_.return_to_policy(frame, true);
      return false;
    }
    shard_.probed.remove(frames_, frame);
    shard_.victim[shard_.victim_count++] = {frame, &cache, record.page, 0, false, false, false};
    return true;
  }
  for (;;) {
    if (seen.state() != PageState::kResident || seen.has(PageValue::kWriting)) {
      if (was_chosen) victims_.return_to_policy(frame, true);
      return false;
    }
    if (seen.pins() != 0) {
      if (!was_chosen) return false;
      if (!seen.has(PageValue::kParked) && !word.change(seen, seen.plus(PageValue::kParked)))
        continue;
      if (record.is_in_policy != 0) shard_.policy->removed(FrameId{frame});
      record.is_in_policy = 0;
      return false;
    }
    if (word.change(seen, seen.with(PageState::kUnmapping).minus(PageValue::kParked))) break;
  }
  OC_CHECK(seen.frame() == frame);
  Victim& victim = shard_.victim[shard_.victim_count++];
  victim = {frame, &cache, record.page, 0, false, false, false};
  return true;
}

void Eviction::choose(uint32_t count) {
  count = std::min(count, Shard::kVictimsMax);
  for (uint32_t examined = 0; shard_.victim_count < count && examined < 4 * count;) {
    if (const uint32_t frame = shard_.cold.pop(frames_); frame != kNone) {
      ++examined, ++looked_at_;
      add_victim(frame, true);
      continue;
    }
    const size_t chosen =
        shard_.policy->choose_victims({shard_.chosen, count - shard_.victim_count});
    OC_CHECK(chosen <= count - shard_.victim_count);
    if (chosen == 0) return;
    for (size_t i = 0; i < chosen; ++i) add_victim(static_cast<uint32_t>(shard_.chosen[i]), true);
    examined += static_cast<uint32_t>(chosen);
    looked_at_ += static_cast<uint32_t>(chosen);
  }
}

void Eviction::choose_probes(uint32_t count) {
  count = std::min(count, Shard::kVictimsMax - shard_.victim_count);
  if (shard_.victim_count != 0) shard_.probe_price = probe_price_of(*shard_.victim[0].cache);
  if (count == 0 || shard_.probe_price == 0) return;
  const size_t chosen =
      shard_.policy->choose_probes({shard_.chosen, count}, shard_.probe_price, pay_for_probes());
  OC_CHECK(chosen <= count);
  for (size_t i = 0; i < chosen; ++i) probe(static_cast<uint32_t>(shard_.chosen[i]));
  shard_.has_probed.store(shard_.probed.size() != 0, std::memory_order_relaxed);
}

// For how many halves of a probe's price there was time since the last turn: they may take a share
// of it, of all shards together.
uint32_t Eviction::pay_for_probes() {
  constexpr uint64_t kShareOfTime = 64;
  const uint64_t half_ns = kProbeNs / 2 * kShareOfTime * pager_.shards.size();
  const uint64_t now_ns = os::now_ns();
  if (shard_.probes_paid_ns == 0) shard_.probes_paid_ns = now_ns;
  const uint64_t halves = (now_ns - std::min(now_ns, shard_.probes_paid_ns)) / half_ns;
  shard_.probes_paid_ns += halves * half_ns;
  return static_cast<uint32_t>(std::min<uint64_t>(halves, UINT32_MAX));
}

void Eviction::probe(uint32_t frame) {
  FrameRecord& record = frames_[frame];
  OC_CHECK(record.is_in_policy != 0);
  if (record.list != 0) return;  // it is being probed
  const PageCache& cache = *pager_.cache_of(record.cache);
  if (cache.frames->leaving_is_readable()) return;  // its touch would not be seen
  if (cache.is_writable && leaves_writes_to_keepers(cache)) return;
  if (!add_victim(frame, false)) return;
  Victim& victim = shard_.victim[shard_.victim_count - 1];
  OC_CHECK(victim.frame == frame);
  victim.is_probed = true;
  shard_.probed.push(frames_, frame);
}

uint64_t Eviction::add_range(PageCache& cache, uint64_t first, uint64_t end, uint64_t* busy) {
  uint64_t page = cache.touched.next(first, end);
  for (; page < end && !is_full(); page = cache.touched.next(page + 1, end))
    add_page(cache, page, busy);
  return page;
}

void Eviction::add_page(PageCache& cache, uint64_t page, uint64_t* busy) {
  OC_CHECK(!is_full());
  const PageValue seen = cache.words[page].load();
  if (seen.state() == PageState::kAbsent || seen.state() == PageState::kFailed) return;
  if (&pager_.shard_of(cache, page) != &shard_) return;
  const uint32_t frame = seen.frame();
  const uint8_t list = is_at_rest(seen) ? frames_[frame].list : uint8_t{0};
  if (list == kLeavingList || list == kProbedList) {  // it leaves with the batch
    if (list == kLeavingList) {
      shard_.leaving.remove(frames_, frame);
    } else {
      shard_.probed.remove(frames_, frame);
      shard_.policy->removed(FrameId{frame});
      frames_[frame].is_in_policy = 0;
    }
    shard_.victim[shard_.victim_count++] = {frame, &cache, page, 0, false, false, false};
    return;
  }
  if (seen.state() != PageState::kResident || !add_victim(frame, false)) {
    ++*busy;
    return;
  }
  OC_CHECK(shard_.victim[shard_.victim_count - 1].page == page);
  // It may have come into the inbox while we added it; the policy must know a frame before it can
  // forget it.
  victims_.drain_inbox();
  if (frames_[frame].list == kColdList) shard_.cold.remove(frames_, frame);
  if (frames_[frame].is_in_policy != 0) shard_.policy->removed(FrameId{frame});
  frames_[frame].is_in_policy = 0;
}

template <typename F>
void Eviction::for_each_cache(const F& f) {
  for (uint32_t begin = 0; begin < shard_.victim_count;) {
    uint32_t end = begin;
    while (end < shard_.victim_count && shard_.victim[end].cache == shard_.victim[begin].cache)
      ++end;
    f(begin, end);
    begin = end;
  }
}

void Eviction::clean(Bytes bytes) {
  std::sort(shard_.victim, shard_.victim + shard_.victim_count,
            [](const Victim& a, const Victim& b) {
              return a.cache != b.cache ? a.cache->id < b.cache->id : a.page < b.page;
            });
  for_each_cache([&](uint32_t begin, uint32_t end) { unmap(begin, end); });
  written_.begin();
  writer_.begin();
  for (uint32_t i = 0; i < shard_.victim_count; ++i) {
    Victim& victim = shard_.victim[i];
    if (victim.is_out) continue;
    if (bytes == Bytes::kBlock) {
      block(victim);
      continue;
    }
    if (word_of(victim).load().state() != PageState::kUnmapping) continue;
    if (bytes == Bytes::kWriteBack && victim.cache->is_writable) {
      collect(i);
      if (victim.is_out) continue;
    }
    if (!victim.is_dirty) {
      word_of(victim).update([](PageValue v) {
        return v.with(PageState::kLeaving).minus(PageValue::kDirty).plus(PageValue::kCleaned);
      });
      continue;
    }
    victim.cache->note_cleaning(victim.page);
    word_of(victim).update([](PageValue v) {
      return v.with(PageState::kLeaving).minus(PageValue::kDirty).plus(PageValue::kWriting);
    });
    writer_.queue_written(i);
  }
  writer_.write_until(shard_.victim_count);
  OC_CHECK(writer_.finished() == shard_.victim_count);
  OC_CHECK(shard_.request_count == 0);
  OC_CHECK(shard_.write_buffer_used == 0);
  for (uint32_t i = 0; i < shard_.victim_count; ++i)  // they stay where they are
    if (shard_.victim[i].is_probed) shard_.victim[i].is_out = true;
}

void Eviction::unmap(uint32_t begin, uint32_t end) {
  PageCache& cache = *shard_.victim[begin].cache;
  if (cache.frames->leaving_is_readable()) return;
  const uint32_t views_end = cache.views_end.load(std::memory_order_acquire);
  for (uint32_t v = 0; v < views_end; ++v) {
    View* view = cache.views[v].load(std::memory_order_acquire);
    if (view == nullptr) continue;
    uint32_t pieces = 0;
    for (uint32_t i = begin; i < end; ++i) {
      const uint64_t page = shard_.victim[i].page;
      if (word_of(shard_.victim[i]).load().state() != PageState::kUnmapping) continue;
      if (page >= view->first_page() && page < view->end_page() && view->is_shown(page))
        shard_.piece[pieces++] = view->piece_of(page);
    }
    if (pieces == 0 || cache.frames->unmap({shard_.piece, pieces}) == 0) continue;
    // The kernel refused (memory locked by mlockall, say): what may still be mapped stays resident.
    // What was at rest is not mapped, and may be rescued right now: it is not ours to put back.
    for (uint32_t i = begin; i < end; ++i)
      if (word_of(shard_.victim[i]).load().state() == PageState::kUnmapping)
        victims_.put_back(shard_.victim[i]);
    return;
  }
}

// Unmapping, or Leaving and at rest → Dropping.
void Eviction::block(Victim& victim) {
  PageValue seen = word_of(victim).load();
  bool is_ours = false;
  while (!is_ours && !seen.has(PageValue::kWriting) &&
         (seen.state() == PageState::kUnmapping || seen.state() == PageState::kLeaving))
    is_ours = word_of(victim).change(seen, seen.with(PageState::kDropping));
  victim.is_out = !is_ours;
}

uint32_t Eviction::blocked_count() const {
  return static_cast<uint32_t>(std::count_if(shard_.victim, shard_.victim + shard_.victim_count,
                                             [](const Victim& victim) { return !victim.is_out; }));
}

void Eviction::put_back_all(bool is_stored) {
  for (uint32_t i = 0; i < shard_.victim_count; ++i) {
    Victim& victim = shard_.victim[i];
    if (victim.is_out) continue;
    PageCache& cache = *victim.cache;
    if (!is_stored && cache.frames->has_write_faults())
      word_of(victim).update([](PageValue v) { return v.plus(PageValue::kDirty); });
    victims_.put_back(victim);
    if (!is_stored && cache.frames->reports_written())
      cache.restore_written(victim.page, victim.page * cache.page_bytes,
                            (victim.page + 1) * cache.page_bytes);
  }
}

void Eviction::collect(uint32_t i) {
  Victim& victim = shard_.victim[i];
  PageCache& cache = *victim.cache;
  const bool is_unmapped = !cache.frames->leaving_is_readable();
  // Where the first write to a page is a fault, most pages need not be asked.
  if (cache.frames->has_write_faults() && !word_of(victim).load().has(PageValue::kDirty)) return;
  const int result = written_.ask(i);
  victim.is_dirty = !shard_.written.is_empty(cache.page_bytes / base::kSystemPage);
  // What was written after a cut waits until the cut is stored.
  const bool must_leave_it =
      victim.is_dirty && (leaves_writes_to_keepers(cache) || cache.epoch.is_closed());
  if (result == 0 && !must_leave_it) return;
  if (looked_at_ > 0 && !victim.is_probed) --looked_at_;
  if (!is_unmapped && result == 0)
    cache.for_each_showing(victim.page, [&](View& view) {
      cache.frames->restore(view.piece_of(victim.page), shard_.written);
    });
  victims_.put_back(victim);
}

uint64_t Eviction::free() {  // banned-ok: no call of the C library
  uint64_t freed = 0;
  for_each_cache([&](uint32_t begin, uint32_t end) {
    PageCache& cache = *shard_.victim[begin].cache;
    uint32_t pieces = 0;
    for (uint32_t i = begin; i < end; ++i) {
      Victim& victim = shard_.victim[i];
      if (victim.is_out) continue;
      PageValue seen = word_of(victim).load();
      bool is_ours = seen.state() == PageState::kDropping;  // blocked
      while (!is_ours && seen.state() == PageState::kLeaving && !seen.has(PageValue::kWriting))
        is_ours = word_of(victim).change(seen, seen.with(PageState::kDropping));
      victim.is_out = !is_ours;
      if (!is_ours) continue;
      if (cache.frames->can_share()) {
        shard_.piece[pieces++] = {nullptr, victim.page * cache.page_bytes, cache.page_bytes, false,
                                  0};
      } else {
        // One view shows it; or two do, at the same addresses, while one takes the other's place.
        Piece piece;
        cache.for_each_showing(victim.page,
                               [&](View& view) { piece = view.piece_of(victim.page); });
        if (piece.size_bytes != 0) shard_.piece[pieces++] = piece;
      }
    }
    if (pieces == 0) return;
    const int result = cache.frames->free({shard_.piece, pieces});
    for (uint32_t i = begin; i < end; ++i) {
      Victim& victim = shard_.victim[i];
      if (victim.is_out) continue;
      // The kernel refused one (locked memory), and those before it are gone: ask for each alone.
      if (result != 0 && !free_alone(victim)) {
        victims_.put_back(victim);
        continue;
      }
      cache.for_each_showing(victim.page, [&](View& view) {
        if (cache.frames->can_share()) view.set_shown(victim.page, false);
      });
      forget(victim.frame);
      if (word_of(victim).load().has(PageValue::kZeroed)) cache.zeroed_pages.fetch_sub(1);
      const uint64_t resident =
          cache.resident_bytes.fetch_sub(cache.page_bytes, std::memory_order_relaxed);
      OC_CHECK(resident >= cache.page_bytes);
      cache.note_eviction(victim.page);
      word_of(victim).update([](PageValue) { return PageValue(); });
      frames_.free_frame(victim.frame);
      freed += cache.page_bytes;
    }
  });
  if (freed != 0) pager_.budget.release(freed);  // at once: those who wait wake up once
  return freed;
}

bool Eviction::free_alone(const Victim& victim) {
  PageCache& cache = *victim.cache;
  if (cache.frames->can_share()) {
    const Piece piece{nullptr, victim.page * cache.page_bytes, cache.page_bytes, false, 0};
    return cache.frames->free({&piece, 1}) == 0;
  }
  bool is_free = true;
  cache.for_each_showing(victim.page, [&](View& view) {
    const Piece piece = view.piece_of(victim.page);
    is_free = cache.frames->free({&piece, 1}) == 0 && is_free;
  });
  return is_free;
}

void Eviction::forget(uint32_t frame) {
  FrameRecord& record = frames_[frame];
  OC_CHECK(record.list == 0);
  OC_CHECK(record.cache != kNone);
  if (record.is_in_policy != 0) shard_.policy->freed(FrameId{frame});
  record.is_in_policy = record.is_known = 0;
  std::atomic_ref(record.cache).store(kNone, std::memory_order_relaxed);
}

void Eviction::rest(uint32_t leaving_target) {
  for (uint32_t i = 0; i < shard_.victim_count; ++i) {
    Victim& victim = shard_.victim[i];
    if (victim.is_out) continue;
    if (word_of(victim).load().state() == PageState::kLeaving)
      shard_.leaving.push(frames_, victim.frame);
  }
  shard_.victim_count = 0;
  while (shard_.leaving.size() > leaving_target && shard_.victim_count < Shard::kVictimsMax) {
    const uint32_t frame = shard_.leaving.pop(frames_);
    const FrameRecord& record = frames_[frame];
    OC_CHECK(record.cache != kNone);
    shard_.victim[shard_.victim_count++] = {
        frame, pager_.cache_of(record.cache), record.page, 0, false, false, false};
  }
  std::sort(shard_.victim, shard_.victim + shard_.victim_count,
            [](const Victim& a, const Victim& b) {
              return a.cache != b.cache ? a.cache->id < b.cache->id : a.page < b.page;
            });
}

}  // namespace outcore::paging
