#include "core/paging/shared_write_back.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>

#include "core/base/assert.h"
#include "core/os/file_calls.h"
#include "core/os/wait_limit.h"
#include "core/store/store_calls.h"

namespace outcore::paging {

using buffer::kPage;
using buffer::Marks;
using metrics::Counter;
using region::View;

namespace {

constexpr uint64_t kRunPages = 128;

}  // namespace

Marks& SharedWriteBack::marks_of(const PageCache& cache) {
  OC_CHECK(cache.writes != nullptr && cache.shared->marks() != nullptr);
  return *cache.shared->marks();
}

// Writes through this process's views are faults from now on.
int SharedWriteBack::protect(PageCache& cache, uint64_t first, uint64_t end) {
  const os::SignalBlock block;
  const os::Locked locked(cache.writes->views);
  const uint32_t views_end = cache.views_end.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < views_end; ++i) {
    const View* const view = cache.views[i].load(std::memory_order_acquire);
    if (view == nullptr || !view->is_writable.load()) continue;
    const os::Piece piece = view->pieces_of(first, end);
    if (piece.size_bytes == 0) continue;
    if (const int result = cache.frames->unmap({&piece, 1}); result != 0) return result;
  }
  return 0;
}

// What is in memory of the pages goes to the store; what is not there was not written.
int SharedWriteBack::write(PageCache& cache, uint64_t first, uint64_t end) {
  const buffer::Member& member = cache.shared->buffer().member();
  const uint64_t base = cache.shared->frame_page(first) * kPage;
  const std::span<std::byte> buffer = filler_.bounce().acquire((end - first) * kPage);
  OC_CHECK(buffer.size() >= (end - first) * kPage);
  const auto is_there = [&](uint64_t page) {
    const auto from = static_cast<off_t>(base + (page - first) * kPage);
    return ::lseek(member.frames_fd(), from, SEEK_DATA) == from;
  };
  int result = member.has_frames() ? 0 : -EBADF;
  for (uint64_t at = first; at < end && result == 0;) {
    const auto from = static_cast<off_t>(base + (at - first) * kPage);
    const off_t data = ::lseek(member.frames_fd(), from, SEEK_DATA);
    if (data < 0 && errno != ENXIO) result = -errno;
    const uint64_t begin =
        data < 0 ? end : std::min(end, first + (static_cast<uint64_t>(data) - base) / kPage);
    if (begin >= end || result != 0) break;
    // For the next hole the kernel would look at all pages up to there, which may be thousands.
    uint64_t stop = begin + 1;
    while (stop < end && is_there(stop)) ++stop;
    const uint64_t bytes = cache.stored_bytes(begin * kPage, (stop - begin) * kPage);
    const std::span<std::byte> part = buffer.subspan((begin - first) * kPage, bytes);
    if (bytes != 0) {
      result = os::read_all(member.frames_fd(), base + (begin - first) * kPage, part);
      if (result == 0) {
        cache.write_gate.enter();
        result = store::write(*cache.store.load(), begin * kPage, part);
        cache.write_gate.leave();
        cache.counters.add(Counter::write_requests, 1);
      }
      if (result == 0) {
        cache.counters.add(Counter::written_bytes, bytes);
        cache.counters.add(Counter::write_backs, stop - begin);
      }
    }
    at = std::max(stop, begin + 1);
  }
  filler_.bounce().release(buffer);
  return result;
}

// Pages that others have written as well they store, too: this process only must not write them any
// more. REQUIRES: they are Storing.
void SharedWriteBack::hand_over(PageCache& cache, uint64_t first, uint64_t end) {
  Marks& marks = marks_of(cache);
  uint64_t handed_over = 0;
  const auto can_go = [&](uint64_t page) {
    return marks.is_shared(page) && !filler_.is_pinned(cache, page);
  };
  for (uint64_t at = first; at < end; ++at) {
    uint64_t stop = at;
    while (stop < end && can_go(stop)) ++stop;
    if (stop != at && protect(cache, at, stop) == 0)
      for (uint64_t page = at; page < stop; ++page) {
        cache.note_cleaning(page);
        handed_over += marks.hand_over(page) ? 1 : 0;
      }
    at = stop;  // which stays
  }
  note_clean(cache, handed_over);
}

void SharedWriteBack::note_clean(PageCache& cache, uint64_t pages) {
  buffer::lower(cache.writes->own_pages, pages);
  cleaned_.fetch_add(pages, std::memory_order_relaxed);
  note_cleaned(*cache.writes, pages);
}

uint64_t SharedWriteBack::run_pages_max() const {
  return std::min<uint64_t>(kRunPages, filler_.bounce().shape().chunk_bytes / kPage);
}

// Neighbours that are marked. *is_skipped: another process is just storing some of them.
int SharedWriteBack::store_run(PageCache& cache, uint64_t first, uint64_t end, Whose whose,
                               bool* is_skipped) {
  OC_CHECK(first < end && end - first <= kRunPages);
  Marks& marks = marks_of(cache);
  SharedWrites& writes = *cache.writes;
  const Storing storing(writes, first, end - first);
  if (whose != Whose::kAll) hand_over(cache, first, end);
  const auto is_wanted = [&](uint64_t page) { return whose == Whose::kAll || marks.is_mine(page); };
  int error = 0;
  for (uint64_t at = first; at < end;) {
    // Pages that the kernel may write, as they are pinned, stay as they are: stored, and marked.
    const bool is_pinned = filler_.is_pinned(cache, at);
    uint64_t stop = at;
    while (stop < end && filler_.is_pinned(cache, stop) == is_pinned && is_wanted(stop) &&
           marks.begin_storing(stop))
      ++stop;
    if (stop == at) {
      *is_skipped = true;
      ++at;
      continue;
    }
    const uint64_t bits = is_pinned ? 0 : marks.own_bits();
    // Who found a page clean may be about to take it out of memory, and what is read then is zeros.
    const buffer::Member& member = cache.shared->buffer().member();
    if (!member.wait_for_punchers(cache.shared->frame_page(at), stop - at)) {
      for (uint64_t page = at; page < stop; ++page) marks.end_storing(page, 0);
      return error != 0 ? error : kLater;
    }
    bool is_ours = true;
    for (uint64_t page = at; page < stop; ++page) is_ours = is_ours && marks.is_storing(page);
    if (!is_ours) {
      for (uint64_t page = at; page < stop; ++page) marks.end_storing(page, 0);
      *is_skipped = true;
      at = stop;
      continue;
    }
    int result = is_pinned ? 0 : protect(cache, at, stop);
    for (uint64_t page = at; page < stop && !is_pinned; ++page) cache.note_cleaning(page);
    if (result == 0) result = write(cache, at, stop);
    uint64_t cleaned = 0;
    for (uint64_t page = at; page < stop; ++page)
      cleaned += marks.end_storing(page, result == 0 ? bits : 0) ? 1 : 0;
    note_clean(cache, cleaned);
    if (result != 0) {
      cache.counters.add(Counter::write_back_errors, 1);
      error = result;
    }
    writes.last_error.store(result, std::memory_order_relaxed);
    at = stop;
  }
  return error;
}

int SharedWriteBack::store(PageCache& cache, uint64_t first, uint64_t end, Whose whose,
                           uint64_t most, uint64_t* next) {
  Marks& marks = marks_of(cache);
  const Marks::InHand in_hand(cache.shared->buffer().member());
  Marks::Look look(marks, in_hand);
  const auto is_wanted = [&](uint64_t page) {
    return whose == Whose::kAll ? look.is_any(page) : look.is_mine(page);
  };
  const uint64_t run_pages = run_pages_max();
  constexpr uint64_t kOthersNsMax = 30'000'000'000;
  int error = 0;
  uint64_t stored = 0, group = 0, group_end = 0;
  std::optional<os::WaitLimit> others;
  *next = end;
  // The program may have closed what the marks are found by.
  if (!cache.shared->buffer().member().has_frames()) return *next = first, -EBADF;
  for (uint64_t page = first; page < end;) {
    if (page >= group_end) {
      if (!marks.next_group(page, &group, &group_end)) break;
      page = std::max(page, group);
      if (page >= end) break;
    }
    if (!is_wanted(page)) {
      ++page;
      continue;
    }
    const uint64_t last = std::min({end, group_end, page + run_pages});
    uint64_t stop = page + 1;
    while (stop < last && is_wanted(stop)) ++stop;
    bool is_skipped = false;
    const int result = store_run(cache, page, stop, whose, &is_skipped);
    if (result == kLater) {
      if (whose == Whose::kFlushed)
        return *next = page, 0;  // what is left is for kAll, which waits
      // Each costs half a second: after the second others have their turn.
      if (whose == Whose::kOwn && error != 0) return *next = stop, error;
      if (whose == Whose::kOwn) error = kLater;
      is_skipped = true;
    } else if (result != 0) {
      error = result;
      if (whose != Whose::kOwn) return *next = page, error;
    }
    // Who stores it may have begun before what was written last: once more.
    if (is_skipped && whose == Whose::kAll) {
      if (!others.has_value()) others.emplace(kOthersNsMax);
      if (others->is_over()) return *next = page, -ETIMEDOUT;
      look.forget();
      os::pause(200'000);
      continue;
    }
    others.reset();
    stored += stop - page;
    page = stop;
    if (stored >= most) {
      *next = page;
      break;
    }
  }
  return error;
}

}  // namespace outcore::paging
