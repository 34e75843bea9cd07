#include "core/paging/cut_search.h"

#include <algorithm>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/wait.h"

namespace outcore::paging {

using os::Piece;
using region::PageState;
using region::PageValue;
using region::View;
using Obstacle = CutObstacle::Kind;

bool CutSearch::look(Look look) {
  for (const auto& shard : pager_.shards) OC_CHECK(look == Look::kList || shard->turn.is_held());
  for (uint32_t i = 0; i < pages_.caches.size(); ++i) {
    if (pages_.caches[i]->is_handed_to_kernel.load(std::memory_order_acquire)) {
      obstacle_.kind = Obstacle::kGone;
      obstacle_.index = i;
      return false;
    }
    const bool has_faults = pages_.caches[i]->frames->has_write_faults();
    if (!(has_faults ? look_at_frames(i, look) : look_at_views(i, look))) return false;
  }
  return true;
}

// Where the kernel notes writes, it is asked. Views stay while any shard's turn is held; for a
// list, which is a hint, that is let go now and then.
bool CutSearch::look_at_views(uint32_t index, Look look) {
  constexpr uint64_t kBytesAtOnce = 64 << 20;
  PageCache& cache = *pages_.caches[index];
  const uint32_t views_end = cache.views_end.load(std::memory_order_acquire);
  for (uint32_t v = 0; v < views_end; ++v)
    for (uint64_t at = 0;;) {
      os::Lock& turn = pager_.shards[0]->turn;
      if (look == Look::kList) turn.lock();
      const View* view = cache.views[v].load(std::memory_order_acquire);
      const uint64_t end = view == nullptr || !view->is_writable ? 0 : view->mapped_bytes();
      uint64_t scanned = 0;
      bool is_good = true;
      if (at < end) {
        const uint64_t most = look == Look::kList ? kBytesAtOnce : end - at;
        const Piece piece{view->address + at, view->offset + at, std::min(end - at, most), true, 0};
        const int found = cache.frames->find_written(piece, run_, &scanned);
        OC_CHECK(found <= static_cast<int>(kRunsMax));
        OC_CHECK(scanned <= piece.size_bytes);
        if (found < 0) obstacle_.kind = Obstacle::kUnknown, obstacle_.index = index;
        is_good = found >= 0 && scanned != 0;
        for (int i = 0; i < found && is_good; ++i) is_good = note_run(index, *view, run_[i], look);
      }
      if (look == Look::kList) turn.unlock();
      if (!is_good) return false;
      at += scanned;
      if (at >= end) break;
    }
  return true;
}

bool CutSearch::note_run(uint32_t index, const View& view, const os::WrittenRun& run, Look look) {
  OC_CHECK(run.from < run.to);
  const uint64_t page_bytes = pages_.caches[index]->page_bytes;
  for (uint64_t page = run.from / page_bytes; page * page_bytes < run.to; ++page)
    if (!examine(index, page, &view, run, look)) return false;
  return true;
}

// Where the first write to a page is a fault, its word tells. Of a cache that is mostly in memory
// all words are looked at, which lie side by side; of any other those of the frames. Pages on their
// way in have frames, too: one that is filled to be written has no word of it yet.
bool CutSearch::look_at_frames(uint32_t index, Look look) {
  constexpr uint64_t kWordsPerFrame = 16;
  PageCache& cache = *pages_.caches[index];
  budget::FrameTable& frames = pager_.frames;
  if (cache.page_count() <= frames.used_once() * kWordsPerFrame) {
    bool has_filling = false;  // whoever has no frame yet may be waiting for our turns
    for (uint64_t page = 0; page < cache.page_count(); ++page) {
      const PageState state = cache.words[page].load().state();
      has_filling = has_filling || state == PageState::kFilling;
      if (state == PageState::kAbsent || state == PageState::kFilling) continue;
      if (!examine(index, page, nullptr, {}, look)) return false;
    }
    if (!has_filling || look == Look::kList) return true;
  }
  for (uint32_t frame = 0; frame < frames.used_once(); ++frame) {
    budget::FrameRecord& record = frames[frame];
    if (std::atomic_ref(record.cache).load(std::memory_order_seq_cst) != cache.id) continue;
    const uint64_t page = std::atomic_ref(record.page).load(std::memory_order_relaxed);
    if (page < cache.page_count() && !examine(index, page, nullptr, {}, look)) return false;
  }
  return true;
}

// A page that may be written: freezes it, or puts it on the list. What is in other hands is waited
// for, as only at rest it tells what was written.
bool CutSearch::examine(uint32_t index, uint64_t page, const View* view, const os::WrittenRun& run,
                        Look look) {
  PageCache& cache = *pages_.caches[index];
  OC_CHECK(page < cache.page_count());
  region::PageWord& word = cache.words[page];
  for (;;) {
    PageValue seen = word.load();
    const PageState state = seen.state();
    if (state == PageState::kAbsent || state == PageState::kFailed || state == PageState::kFrozen)
      return true;
    if (state == PageState::kLeaving && seen.has(PageValue::kCleaned)) return true;
    if (state == PageState::kFilling && view != nullptr) {
      // What was never installed scans as written. The fill may be waiting for our turns.
      bool is_in = false;
      const uint64_t from = std::max(run.from, page * cache.page_bytes);
      const uint64_t to = std::min(run.to, (page + 1) * cache.page_bytes);
      for (uint64_t at = from; at < to && !is_in; at += base::kSystemPage)
        is_in = cache.frames->holds(at);
      if (!is_in) return true;
    }
    if (state == PageState::kResident) {
      const bool is_known_clean =
          view == nullptr ? !seen.has(PageValue::kDirty) : !view->is_shown(page);
      if (is_known_clean && !seen.has(PageValue::kWriting)) return true;
    }
    if (look == Look::kList) {
      if (state == PageState::kResident && pages_.count < pages_.key.count())
        pages_.key[pages_.count++] = CutPages::key_of(index, page);
      return true;
    }
    if (state != PageState::kResident || seen.has(PageValue::kWriting) || seen.pins() != 0) {
      if (!wait_for(index, page, seen)) return false;
      continue;
    }
    if (!word.change(seen, seen.with(PageState::kFrozen))) continue;
    OC_CHECK(pages_.count < pages_.key.count());  // each has a frame
    pages_.key[pages_.count++] = CutPages::key_of(index, page);
    return true;
  }
}

// Until the page is in other hands no more, for as long as this attempt may take.
bool CutSearch::wait_for(uint32_t index, uint64_t page, PageValue seen) {
  // A pin may stay for long, and fillers without a frame wait for our turns.
  const bool is_short = is_paused_ || seen.pins() != 0;
  const uint64_t most = is_short ? kPausedSettleNsMax : kSettleNsMax;
  if (os::now_ns() - settle_start_ns_ >= most) {
    obstacle_.kind = seen.pins() != 0 ? Obstacle::kPinned : Obstacle::kBusyPage;
    obstacle_.index = index;
    obstacle_.page = page;
    return false;
  }
  pages_.caches[index]->words[page].wait_while(seen, 1'000'000);
  return true;
}

bool CutSearch::seal(uint64_t first) {
  OC_CHECK(first <= pages_.count);
  if (first == pages_.count) return true;
  std::sort(&pages_.key[first], &pages_.key[0] + pages_.count);
  for (uint64_t begin = first; begin < pages_.count;) {
    uint64_t end = begin;
    while (end < pages_.count &&
           pages_.index_of(pages_.key[end]) == pages_.index_of(pages_.key[begin]))
      ++end;
    PageCache& cache = pages_.cache_of(begin);
    const bool has_faults = cache.frames->has_write_faults();
    if (!(has_faults ? protect(cache, begin, end) : unmap(cache, begin, end))) return false;
    begin = end;
  }
  return true;
}

bool CutSearch::unmap(PageCache& cache, uint64_t first, uint64_t end) {
  OC_CHECK(first < end);
  OC_CHECK(end <= pages_.count);
  const uint32_t views_end = cache.views_end.load(std::memory_order_acquire);
  for (uint32_t v = 0; v < views_end; ++v) {
    const View* view = cache.views[v].load(std::memory_order_acquire);
    if (view == nullptr) continue;
    uint32_t pieces = 0;
    const auto unmap_them = [&] {
      if (pieces == 0 || cache.frames->unmap({piece_, pieces}) == 0) return true;
      obstacle_.kind = Obstacle::kLocked;
      obstacle_.index = pages_.index_of(pages_.key[first]);
      return false;
    };
    for (uint64_t i = first; i < end; ++i) {
      const uint64_t page = pages_.page_of(pages_.key[i]);
      OC_ASSERT(cache.words[page].glance() == PageState::kFrozen);
      if (page < view->first_page() || page >= view->end_page() || !view->is_shown(page)) continue;
      const Piece piece = view->piece_of(page);
      if (pieces > 0 &&
          piece_[pieces - 1].address + piece_[pieces - 1].size_bytes == piece.address) {
        piece_[pieces - 1].size_bytes += piece.size_bytes;
        continue;
      }
      if (pieces == kPiecesMax) {
        if (!unmap_them()) return false;
        pieces = 0;
      }
      OC_CHECK(pieces < kPiecesMax);
      piece_[pieces++] = piece;
    }
    if (!unmap_them()) return false;
  }
  return true;
}

// They stay readable; a write is a fault, and waits.
bool CutSearch::protect(PageCache& cache, uint64_t first, uint64_t end) {
  OC_CHECK(first < end);
  OC_CHECK(end <= pages_.count);
  const uint64_t subpages = cache.page_bytes / base::kSystemPage;
  for (uint64_t i = first; i < end;) {
    uint64_t last = i + 1;  // neighbours are asked about at once
    while (last < end && pages_.key[last] == pages_.key[last - 1] + 1 &&
           (last - i + 1) * subpages <= os::SubpageSet::kCount)
      ++last;
    os::SubpageSet written;
    const uint64_t page = pages_.page_of(pages_.key[i]);
    if (cache.collect_written_between(page, page + (last - i), &written) != 0) {
      obstacle_.kind = Obstacle::kUnknown;
      obstacle_.index = pages_.index_of(pages_.key[i]);
      return false;
    }
    for (uint64_t at = 0; i < last; ++i, at += subpages) {
      for (uint64_t k = 0; k < pages_.words_each; ++k)
        pages_.written_bits[i * pages_.words_each + k] = 0;
      for (uint64_t k = 0; k < subpages && pages_.words_each != 0; ++k)
        if (written.has(at + k) || !cache.frames->reports_written())
          pages_.written_bits[i * pages_.words_each + k / 64] |= uint64_t{1} << (k % 64);
    }
  }
  return true;
}

}  // namespace outcore::paging
