#include "core/paging/shared_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/file_calls.h"
#include "core/os/unseen_by_tsan.h"

namespace outcore::paging {

using buffer::kPage;
using buffer::Marks;
using buffer::News;
using metrics::Counter;
using region::View;

namespace {

constexpr uint64_t kPeriodNs = 100'000'000;
constexpr uint64_t kPagesAtOnce = 1024;  // when pages are to leave
constexpr uint64_t kRunPages = 128;
// Of the limit, one part in so many: what is written above the one is stored, down to the other.
constexpr uint64_t kMuch = 8, kLittle = 16;
constexpr uint64_t kMost = 2, kOfMarks = 64;  // likewise: who writes more waits; marks are freed

Marks& marks_of(const PageCache& cache) {
  OC_CHECK(cache.writes != nullptr && cache.shared->marks() != nullptr);
  return *cache.shared->marks();
}

Error not_stored(const PageCache& cache, int code, uint64_t page) {
  return base::system_error(code, "write page " + std::to_string(page) + " of " + cache.uri,
                            "the bytes stay in memory while the region is mapped: make room or "
                            "repair the store, then flush again");
}

}  // namespace

SharedWriter::~SharedWriter() {
  OC_CHECK(caches_.empty());
  if (!thread_.joinable()) return;
  is_ending_.store(1);
  std::atomic<uint32_t>& requests = buffer_->member().board().store_requests;
  requests.fetch_add(1);
  os::wake_between_processes(&requests);
  thread_.join();
}

Status SharedWriter::add(PageCache* cache) {
  OC_CHECK(cache->writes != nullptr && cache->shared != nullptr);
  const os::SignalBlock block;
  const os::Locked locked(list_lock_);
  if (!thread_.joinable() && pager_.options.has_threads) {
    buffer_ = &cache->shared->buffer();
    try {
      thread_ = os::unseen_thread([this] { run(); });
    } catch (const std::system_error& e) {
      return base::system_error(e.code().value(), "start the thread that stores what is written",
                                "raise ulimit -u");
    }
  }
  caches_.push_back(cache);
  shares_.store(Marks::writers_of_all(cache->shared->buffer().member().board()));
  return {};
}

void SharedWriter::remove(PageCache* cache) {
  const os::SignalBlock block;
  {
    const os::Locked locked(list_lock_);
    std::erase(caches_, cache);
  }
  while (at_work_on_.load(std::memory_order_seq_cst) == cache) os::yield();
  Marks& marks = marks_of(*cache);
  if (!marks.leave_to_others()) marks.drop_all();
}

int SharedWriter::allow(PageCache& cache, const View& view, uint64_t page) {
  OC_ASSERT(view.is_writable.load());
  SharedWrites& writes = *cache.writes;
  Marks& marks = marks_of(cache);
  if (!marks.is_own(page))
    if (const int result = wait_for_share(cache); result != 0) return result;
  const uint64_t start_ns = os::now_ns();
  for (;;) {
    begin_marking(writes, page);
    bool is_new = false;
    int result = marks.set(page, &is_new);
    if (is_new) {
      writes.own_pages.fetch_add(1, std::memory_order_relaxed);
      cache.counters.add(Counter::write_faults, 1);
    }
    if (result == 0) result = cache.frames->allow_write(view.piece_of(page));
    writes.marking.fetch_sub(1, std::memory_order_seq_cst);
    // A member that stands still, as a stopped one does, may go on.
    const bool is_late = os::now_ns() - start_ns > pager_.options.wait_ns_max;
    if (result != -ETIMEDOUT || is_late) return result;
  }
}

// Of the limit, one part in so many, divided among those who write, for each file that they do.
bool SharedWriter::is_over_share(const PageCache& cache, uint64_t part) const {
  const uint64_t limit_pages = SharedFiller::limit_bytes(cache) / kPage;
  const uint64_t writers = std::max({1u, marks_of(cache).writers(), shares_.load()});
  // Pins have a limit of their own, and their pages do not become clean.
  const uint64_t own = cache.writes->own_pages.load(std::memory_order_relaxed),
                 pinned = cache.shared->buffer().member().record().pin_count.load();
  return own > pinned + std::max<uint64_t>(16, limit_pages / part / writers);
}

// Pages that are written cannot leave: there is room for others in any case.
int SharedWriter::wait_for_share(PageCache& cache) {
  SharedWrites& writes = *cache.writes;
  if (!is_over_share(cache, kMost)) return 0;
  std::atomic<uint32_t>& requests = cache.shared->buffer().member().board().store_requests;
  const uint64_t start_ns = os::now_ns();
  bool is_over = true, is_to_ask = true;
  writes.share_waiters.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const uint32_t seen = writes.cleaned.load(std::memory_order_seq_cst);
    is_over = is_over_share(cache, kMost);
    const uint64_t now_ns = os::now_ns();
    if (!is_over || now_ns - start_ns > pager_.options.wait_ns_max) break;
    if (is_to_ask) {
      requests.fetch_add(1, std::memory_order_seq_cst);
      os::wake_between_processes(&requests);
    }
    os::wait(&writes.cleaned, seen, kPeriodNs);
    is_to_ask = os::now_ns() - now_ns >= kPeriodNs;  // nobody seems to store anything
  }
  writes.share_waiters.fetch_sub(1, std::memory_order_seq_cst);
  if (!is_over) return 0;
  return writes.last_error.load() != 0 ? writes.last_error.load() : -ENOMEM;
}

int SharedWriter::protect(PageCache& cache, uint64_t first, uint64_t end) {
  const os::SignalBlock block;
  const os::Locked locked(cache.writes->views);
  const uint32_t views_end = cache.views_end.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < views_end; ++i) {
    View* const view = cache.views[i].load(std::memory_order_acquire);
    if (view == nullptr || !view->is_writable.load()) continue;
    const os::Piece piece = view->pieces_of(first, end);
    if (piece.size_bytes == 0) continue;
    if (const int result = cache.frames->unmap({&piece, 1}); result != 0) return result;
  }
  return 0;
}

// What is in memory of the pages goes to the store; what is not there was not written.
int SharedWriter::write(PageCache& cache, uint64_t first, uint64_t end) {
  const buffer::Member& member = cache.shared->buffer().member();
  const uint64_t base = cache.shared->frame_page(first) * kPage;
  const std::span<std::byte> buffer = filler_.bounce().acquire((end - first) * kPage);
  OC_CHECK(buffer.size() >= (end - first) * kPage);
  int result = member.has_frames() ? 0 : -EBADF;
  for (uint64_t at = first; at < end && result == 0;) {
    const auto from = static_cast<off_t>(base + (at - first) * kPage);
    const off_t data = ::lseek(member.frames_fd(), from, SEEK_DATA);
    if (data < 0 && errno != ENXIO) result = -errno;
    const uint64_t begin =
        data < 0 ? end : std::min(end, first + (static_cast<uint64_t>(data) - base) / kPage);
    if (begin >= end || result != 0) break;
    const off_t hole = begin + 1 == end  // no need to ask
                           ? -1
                           : ::lseek(member.frames_fd(),
                                     static_cast<off_t>(base + (begin - first) * kPage), SEEK_HOLE);
    const uint64_t stop =
        hole < 0 ? end : std::min(end, first + (static_cast<uint64_t>(hole) - base) / kPage);
    const uint64_t bytes = cache.stored_bytes(begin * kPage, (stop - begin) * kPage);
    const std::span<std::byte> part = buffer.subspan((begin - first) * kPage, bytes);
    if (bytes != 0) {
      result = os::read_all(member.frames_fd(), base + (begin - first) * kPage, part);
      if (result == 0) {
        cache.write_gate.enter();
        result = cache.store.load()->write(begin * kPage, part);
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

// Neighbours that are marked. *is_skipped: another process is just storing some of them.
int SharedWriter::store_run(PageCache& cache, uint64_t first, uint64_t end, bool* is_skipped) {
  OC_CHECK(first < end && end - first <= kRunPages);
  Marks& marks = marks_of(cache);
  SharedWrites& writes = *cache.writes;
  const Storing storing(writes, first, end - first);
  int error = 0;
  for (uint64_t at = first; at < end;) {
    // Pages that the kernel may write, as they are pinned, stay as they are: stored, and marked.
    const bool is_pinned = filler_.is_pinned(cache, at);
    uint64_t stop = at;
    while (stop < end && filler_.is_pinned(cache, stop) == is_pinned && marks.begin_storing(stop))
      ++stop;
    if (stop == at) {
      *is_skipped = true;
      ++at;
      continue;
    }
    const uint64_t bits = is_pinned ? 0 : marks.own_bits();
    // Who found a page clean may be about to take it out of memory, and what is read then is zeros.
    int result = cache.shared->buffer().member().wait_for_punchers() ? 0 : -ETIMEDOUT;
    bool is_ours = true;
    for (uint64_t page = at; page < stop; ++page) is_ours = is_ours && marks.is_storing(page);
    if (!is_ours) {
      for (uint64_t page = at; page < stop; ++page) marks.end_storing(page, 0);
      *is_skipped = true;
      at = stop;
      continue;
    }
    if (result == 0 && !is_pinned) result = protect(cache, at, stop);
    if (result == 0) result = write(cache, at, stop);
    uint64_t cleaned = 0;
    for (uint64_t page = at; page < stop; ++page)
      cleaned += marks.end_storing(page, result == 0 ? bits : 0) ? 1 : 0;
    buffer::lower(writes.own_pages, cleaned);
    cleaned_.fetch_add(cleaned, std::memory_order_relaxed);
    note_cleaned(writes, cleaned);
    if (result != 0) {
      cache.counters.add(Counter::write_back_errors, 1);
      error = result;
    }
    writes.last_error.store(result, std::memory_order_relaxed);
    at = stop;
  }
  return error;
}

int SharedWriter::store(PageCache& cache, uint64_t first, uint64_t end, Whose whose, uint64_t most,
                        uint64_t* next) {
  Marks& marks = marks_of(cache);
  const auto is_wanted = [&](uint64_t page) {
    return whose == Whose::kAll ? marks.is_any(page) : marks.is_mine(page);
  };
  const uint64_t run_pages =
      std::min<uint64_t>(kRunPages, filler_.bounce().shape().chunk_bytes / kPage);
  constexpr uint64_t kOthersNsMax = 30'000'000'000;
  int error = 0;
  uint64_t stored = 0, group = 0, group_end = 0, others_ns = 0;
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
    if (const int result = store_run(cache, page, stop, &is_skipped); result != 0) {
      error = result;
      if (whose == Whose::kAll) return *next = page, error;
    }
    // Who stores it may have begun before what was written last: once more.
    if (is_skipped && whose == Whose::kAll) {
      const uint64_t now_ns = os::now_ns();
      if (others_ns == 0) others_ns = now_ns;
      if (now_ns - others_ns > kOthersNsMax) return *next = page, -ETIMEDOUT;
      ::usleep(200);
      continue;
    }
    others_ns = 0;
    stored += stop - page;
    page = stop;
    if (stored >= most) {
      *next = page;
      break;
    }
  }
  return error;
}

Status SharedWriter::flush(PageCache& cache, uint64_t first, uint64_t end) {
  OC_CHECK(first <= end && end <= cache.page_count());
  cache.counters.add(Counter::flushes, 1);
  uint64_t next = first;
  cache.writes->flushes.fetch_add(1);  // two that store take turns, page by page
  const int error = store(cache, first, end, Whose::kAll, UINT64_MAX, &next);
  cache.writes->flushes.fetch_sub(1);
  if (error != 0) {
    cache.write_failures.note(next * kPage, kPage);
    cache.write_failures.note_reported();
    return not_stored(cache, error, next);
  }
  const WriteFailures::Unreported earlier =
      cache.write_failures.note_stored(first * kPage, end * kPage);
  return earlier.code == 0 ? Status() : not_stored(cache, earlier.code, earlier.offset / kPage);
}

void SharedWriter::run() {
  const os::SignalBlock block;
  std::atomic<uint32_t>& requests = buffer_->member().board().store_requests;
  uint32_t heard = requests.load(std::memory_order_seq_cst);
  uint64_t cleaned_before = 0;
  while (is_ending_.load() == 0) {
    const bool is_vain = cleaned_ == std::exchange(cleaned_before, cleaned_);
    if (is_vain || !is_any_over_share()) os::wait_between_processes(&requests, heard, kPeriodNs);
    const uint32_t now = requests.load(std::memory_order_seq_cst);
    const bool is_asked = now != heard;
    shares_.store(Marks::writers_of_all(buffer_->member().board()));
    heard = now;
    bool is_any_stored = false;
    for (size_t i = 0;; ++i) {
      PageCache* cache = nullptr;
      {
        const os::Locked locked(list_lock_);
        if (i >= caches_.size()) break;
        cache = caches_[i];
        at_work_on_.store(cache, std::memory_order_seq_cst);
      }
      is_any_stored = pass(*cache, is_asked) || is_any_stored;
      at_work_on_.store(nullptr, std::memory_order_seq_cst);
    }
    if (is_any_stored) buffer_->room().ring();
  }
}

// There is more to do, and it can be done.
bool SharedWriter::is_any_over_share() {
  const os::Locked locked(list_lock_);
  return std::any_of(caches_.begin(), caches_.end(), [this](const PageCache* cache) {
    return cache->writes->last_error.load() == 0 && is_over_share(*cache, kMuch);
  });
}

int SharedWriter::store_adopted(PageCache& cache) {
  Marks& marks = marks_of(cache);
  uint64_t next = 0;
  const int error = store(cache, 0, cache.page_count(), Whose::kOwn, UINT64_MAX, &next);
  if (error != 0) {
    cache.write_failures.note_unreported({-error, next * kPage, kPage, false});
    return error;
  }
  if (const uint64_t forgotten = marks.begin_to_forget(); forgotten != 0) {
    { const Storing nobody_else(*cache.writes, 0, 1); }  // who still has them in hand
    marks.forget(forgotten);
  }
  return 0;
}

// Returns whether something was stored.
bool SharedWriter::pass(PageCache& cache, bool is_asked) {
  SharedWrites& writes = *cache.writes;
  const uint64_t pages = cache.page_count();
  const bool has_adopted = marks_of(cache).adopt();
  if (has_adopted) static_cast<void>(store_adopted(cache));
  const auto may_go_on = [&] { return writes.flushes.load() == 0 || is_over_share(cache, kMost); };
  bool is_wanted = is_asked || (may_go_on() && is_over_share(cache, kMuch));
  bool is_any = has_adopted;
  for (int rounds = 0; is_wanted && rounds < 16 && is_ending_.load() == 0; ++rounds) {
    uint64_t next = 0;
    const int error = store(cache, writes.next_page, pages, Whose::kOwn, kPagesAtOnce, &next);
    if (error != 0)
      cache.write_failures.note_unreported({-error, writes.next_page * kPage, kPage, false});
    writes.next_page = next >= pages ? 0 : next;
    is_any = true;
    is_wanted = error == 0 && may_go_on() && is_over_share(cache, kLittle);
  }
  if (!is_any) return false;
  note_cleaned(writes, kCleanedTogether);
  free_marks(cache);
  return true;
}

// Marks take memory, a page for 512, also where none is set any more.
void SharedWriter::free_marks(PageCache& cache) {
  buffer::Buffer& buffer = cache.shared->buffer();
  if (buffer.member().occupancy().marks_bytes() < SharedFiller::limit_bytes(cache) / kOfMarks)
    return;
  uint64_t group = 0, end = 0;
  for (uint64_t from = 0; marks_of(cache).next_group(from, &group, &end); from = end)
    for (uint64_t page = base::round_down(group, Marks::kGroup); page < end; page += Marks::kGroup)
      static_cast<void>(buffer.puncher().punch_marks(cache.shared->first_frame_page() + page));
}

}  // namespace outcore::paging
