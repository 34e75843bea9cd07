#include "core/paging/shared_writer.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/unseen_by_tsan.h"
#include "core/os/wait_limit.h"
#include "core/paging/transfer_error.h"

namespace outcore::paging {

using buffer::kPage;
using buffer::Marks;
using buffer::PageReport;
using metrics::Counter;
using region::View;

namespace {

constexpr uint64_t kPeriodNs = 100'000'000;
constexpr uint64_t kPagesAtOnce = 1024;  // when pages are to leave
// Of what can hold pages that are not pinned, so many 32nds. Where more than `much` is written by
// all together, those who have written more than their part of `fair` store it, down to `little`,
// beside what is to leave; or wait, above `most`. So an eighth is for other pages, also while
// nothing can be stored. Above `nearly` writes let in one page each. Who is alone stores more
// ahead, many pages at once (Keeping::evict).
struct Levels {
  uint64_t fair, little, much, nearly, most;
};
constexpr Levels kAlone{6, 6, 8, 14, 16}, kTogether{6, 18, 20, 21, 22};
constexpr uint64_t kCountNs = 20'000'000;  // between two times that pins are looked at
constexpr uint64_t kOfMarks = 64;  // one part of what can hold pages, above which marks are freed

Error not_stored(const PageCache& cache, int code, uint64_t page) {
  return transfer_error(cache, code, "write page " + std::to_string(page) + " of " + cache.uri,
                        "the bytes stay in memory while the region is mapped: make room or "
                        "repair the store, then flush again");
}

// For the next flush to report.
void note_failed(PageCache& cache, int error, uint64_t page) {
  if (error != 0 && error != SharedWriteBack::kLater)
    cache.write_failures.note_unreported({-error, page * kPage, kPage, false});
}

}  // namespace

SharedWriter::~SharedWriter() {
  OC_CHECK(caches_.empty());
  if (!thread_.joinable()) return;
  tell_to_end();
  thread_.join();
}

void SharedWriter::tell_to_end() {
  is_ending_.store(1);
  os::Word<uint32_t>& requests = buffer_->member().board().store_requests;
  requests.fetch_add(1);
  os::wake_between_processes(&requests);
}

Status SharedWriter::add(PageCache* cache) {
  OC_CHECK(cache->writes != nullptr && cache->shared != nullptr);
  const os::SignalBlock block;
  const os::Locked locked(list_lock_);
  if (buffer_ == nullptr) buffer_ = &cache->shared->buffer();
  OC_CHECK(buffer_ == &cache->shared->buffer());
  if (!thread_.joinable() && pager_.options.has_threads) {
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
  buffer::lower(cache->shared->buffer().member().record().pinned_written,
                static_cast<uint32_t>(cache->writes->own_pinned.exchange(0)));
  Marks& marks = SharedWriteBack::marks_of(*cache);
  if (!marks.has_any_own()) return;  // the lock is for little
  // Who begins to write now may leave pages to this process, as long as it has marked them.
  const buffer::Member::FilesLock lock(cache->shared->buffer().member());
  if (!marks.leave_to_others(!lock.is_held())) marks.drop_all();
}

// Marks take memory, too: a page, or two. Where they have some already it may be freed just now:
// so it counts as under way before it is looked for.
int SharedWriter::allow(PageCache& cache, const View& view, uint64_t page, TouchRuns::Run run) {
  OC_ASSERT(view.is_writable.load());
  OC_CHECK(run.first <= page && page < run.end && run.end <= cache.page_count());
  const Marks& marks = SharedWriteBack::marks_of(cache);
  buffer::Buffer& buffer = cache.shared->buffer();
  int result = 0;
  // False: their memory is gone, or this process must wait first, as others wait for what is held.
  const auto try_mark = [&](bool* must_wait) {
    const Marks::InHand in_hand(buffer.member());
    const bool has_memory = marks.has_memory(run.first, run.end);
    const bool is_new = !has_memory || !marks.is_own(page);
    if (must_wait != nullptr) *must_wait = is_new && is_over_share(cache, Written::kMost);
    if (!has_memory || (must_wait != nullptr && *must_wait)) return false;
    result = mark(cache, view, page, run);
    return true;
  };
  bool must_wait = false;
  if (try_mark(&must_wait)) return result;
  if (must_wait) {
    if (result = wait_for_share(cache); result != 0) return result;
    if (try_mark(nullptr)) return result;
  }
  constexpr uint64_t kPages = Marks::InHand::kPagesMost;
  if (!buffer.room().try_acquire(kPages))
    if (result = filler_.wait_for_room(cache, kPages); result != 0) return result;
  const Marks::InHand in_hand(buffer.member(), Marks::InHand::Acquired{});
  return mark(cache, view, page, run);
}

int SharedWriter::mark(PageCache& cache, const View& view, uint64_t page, TouchRuns::Run run) {
  SharedWrites& writes = *cache.writes;
  Marks& marks = SharedWriteBack::marks_of(cache);
  os::WaitLimit limit(pager_.options.wait_ns_max);
  for (;;) {
    begin_marking(writes, page);
    if (is_any_stored(writes, run.first, run.end) || is_above(cache, Written::kNearlyMost))
      run = {page, page + 1};
    uint64_t newly = 0;
    int result = marks.set(run.first, run.end - run.first, &newly);
    if (newly != 0) {
      writes.own_pages.fetch_add(newly, std::memory_order_relaxed);
      cache.counters.add(Counter::write_faults, 1);
    }
    if (result == 0) result = cache.frames->allow_write(view.pieces_of(run.first, run.end));
    writes.marking.fetch_sub(1, std::memory_order_seq_cst);
    // Neighbours may lie in a mapping of their own, as the program has advised (ENOENT).
    if (result != 0 && run.end - run.first > 1) {
      run = {page, page + 1};
      continue;
    }
    // A stopped member may go on.
    if (result != -ETIMEDOUT || limit.is_over()) return result;
  }
}

bool SharedWriter::is_above(const PageCache& cache, Written written, uint64_t* fair_pages) const {
  const uint64_t limit_bytes = SharedFiller::limit_bytes(cache);
  const buffer::Board& board = cache.shared->buffer().member().board();
  const Levels& levels = board.never_had_company() ? kAlone : kTogether;
  const uint64_t level = written == Written::kLittle       ? levels.little
                         : written == Written::kMuch       ? levels.much
                         : written == Written::kNearlyMost ? levels.nearly
                                                           : levels.most;
  const buffer::Kept kept = buffer::kept_by_members(board);
  const uint64_t taken_bytes = kept.private_bytes + kept.pinned_bytes + marks_bytes_.load();
  const uint64_t pages = (limit_bytes - std::min(limit_bytes, taken_bytes)) / kPage;
  if (fair_pages != nullptr) *fair_pages = pages * levels.fair / 32;
  const uint64_t marked = board.written_pages.load(std::memory_order_relaxed);
  return marked > kept.pinned_written_pages + pages * level / 32;
}

// What is fair is divided among those who write, for each file that they do.
bool SharedWriter::is_over_share(const PageCache& cache, Written written) const {
  uint64_t fair_pages = 0;
  if (!is_above(cache, written, &fair_pages)) return false;
  const uint64_t writers =
      std::max({1u, SharedWriteBack::marks_of(cache).writers(), shares_.load()});
  const SharedWrites& writes = *cache.writes;
  return writes.own_pages.load(std::memory_order_relaxed) >
         writes.own_pinned.load() + std::max<uint64_t>(2, fair_pages / writers);
}

// Pages that are written cannot leave: there is room for others in any case.
int SharedWriter::wait_for_share(PageCache& cache) {
  SharedWrites& writes = *cache.writes;
  if (!is_over_share(cache, Written::kMost)) return 0;
  os::Word<uint32_t>& requests = cache.shared->buffer().member().board().store_requests;
  os::WaitLimit limit(pager_.options.wait_ns_max);
  bool is_over = true, is_to_ask = true;
  writes.share_waiters.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    const uint32_t seen = writes.cleanings.load(std::memory_order_seq_cst);
    is_over = is_over_share(cache, Written::kMost);
    if (!is_over || limit.is_over()) break;
    const uint64_t now_ns = os::now_ns();
    if (is_to_ask) {
      requests.fetch_add(1, std::memory_order_seq_cst);
      os::wake_between_processes(&requests);
    }
    os::wait(&writes.cleanings, seen, kPeriodNs);
    is_to_ask = os::now_ns() - now_ns >= kPeriodNs;  // nobody seems to store anything
  }
  writes.share_waiters.fetch_sub(1, std::memory_order_seq_cst);
  if (!is_over) return 0;
  return writes.last_error.load() != 0 ? writes.last_error.load() : -ENOMEM;
}

Status SharedWriter::flush(PageCache& cache, uint64_t first, uint64_t end) {
  OC_CHECK(first <= end && end <= cache.page_count());
  cache.counters.add(Counter::flushes, 1);
  uint64_t next = first;
  cache.writes->flushes.fetch_add(1);  // two that store take turns, page by page
  // Others may be at it, too: what each has stored of its own the others need not.
  int error = write_back_.store(cache, first, end, Whose::kFlushed, UINT64_MAX, &next);
  if (error == 0) error = write_back_.store(cache, first, end, Whose::kAll, UINT64_MAX, &next);
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

// Until no page has a mark of this process's any more, so that it writes none without a fault.
int SharedWriter::store_mine(PageCache& cache) {
  Marks& marks = SharedWriteBack::marks_of(cache);
  os::WaitLimit limit(pager_.options.wait_ns_max);
  for (;;) {
    uint64_t next = 0;
    const int error =
        write_back_.store(cache, 0, cache.page_count(), Whose::kOwn, UINT64_MAX, &next);
    if (error != 0 && error != SharedWriteBack::kLater) return error;
    if (!marks.has_any_mine()) return 0;
    if (limit.is_over()) return -EBUSY;  // pinned, or others store it for very long
    os::pause(200'000);
  }
}

Status SharedWriter::hand_back(PageCache& cache) {
  OC_CHECK(cache.is_frozen.load());
  constexpr uint64_t kNsMax = 60'000'000'000;  // others may have much to store
  const Status s = cache.shared->hand_back([&] { return store_mine(cache); }, kNsMax);
  if (!s.ok()) return Error{s.code(), "hand back " + cache.uri + ": " + s.message()};
  return {};
}

void SharedWriter::run() {
  const os::SignalBlock block;
  os::Word<uint32_t>& requests = buffer_->member().board().store_requests;
  uint32_t heard = requests.load(std::memory_order_seq_cst);
  uint64_t cleaned_before = 0;
  while (is_ending_.load() == 0) {
    const bool is_vain =
        write_back_.cleaned() == std::exchange(cleaned_before, write_back_.cleaned());
    if (is_vain || !is_any_over_share()) os::wait_between_processes(&requests, heard, kPeriodNs);
    const uint32_t now = requests.load(std::memory_order_seq_cst);
    const bool is_asked = now != heard;
    shares_.store(Marks::writers_of_all(buffer_->member().board()));
    marks_bytes_.store(buffer_->member().occupancy().marks_bytes());
    heard = now;
    const std::vector<uint64_t>& leaving = leaving_.drain(buffer_->member().board());
    bool is_any_stored = false;
    for (size_t i = 0;; ++i) {
      PageCache* cache = nullptr;
      {
        const os::Locked locked(list_lock_);
        if (i >= caches_.size()) break;
        cache = caches_[i];
        at_work_on_.store(cache, std::memory_order_seq_cst);
      }
      is_any_stored = pass(*cache, leaving, is_asked) || is_any_stored;
      at_work_on_.store(nullptr, std::memory_order_seq_cst);
    }
    if (is_any_stored) buffer_->room().ring();
  }
}

// There is more to do, and it can be done.
bool SharedWriter::is_any_over_share() {
  const os::Locked locked(list_lock_);
  return std::any_of(caches_.begin(), caches_.end(), [this](const PageCache* cache) {
    return cache->writes->last_error.load() == 0 && is_over_share(*cache, Written::kMuch);
  });
}

int SharedWriter::store_adopted(PageCache& cache) {
  Marks& marks = SharedWriteBack::marks_of(cache);
  uint64_t next = 0;
  const int error = write_back_.store(cache, 0, cache.page_count(), Whose::kOwn, UINT64_MAX, &next);
  note_failed(cache, error, next);
  if (error != 0) return error == SharedWriteBack::kLater ? -ETIMEDOUT : error;
  if (const uint64_t forgotten = marks.begin_to_forget(); forgotten != 0) {
    { const Storing nobody_else(*cache.writes, 0, 1); }  // who still has them in hand
    marks.forget(forgotten);
  }
  return 0;
}

void SharedWriter::count_pinned(PageCache& cache) {
  SharedWrites& writes = *cache.writes;
  const buffer::Member& member = cache.shared->buffer().member();
  const uint64_t before = writes.own_pinned.load(), now_ns = os::now_ns();
  const bool is_any = member.record().pin_count.load() != 0;
  if ((!is_any && before == 0) || now_ns - writes.pins_counted_ns < kCountNs) return;
  writes.pins_counted_ns = now_ns;
  const uint64_t first = cache.shared->first_frame_page();
  const uint64_t own_bits = SharedWriteBack::marks_of(cache).own_bits();
  const auto is_own = [&](uint64_t page) { return (Marks::glance(member, page) & own_bits) != 0; };
  const uint64_t pinned =
      is_any ? buffer::Pins::count(member.record(), first, first + cache.page_count(), is_own) : 0;
  writes.own_pinned.store(pinned);
  os::Word<uint32_t>& all_pinned = cache.shared->buffer().member().record().pinned_written;
  if (pinned < before) buffer::lower(all_pinned, static_cast<uint32_t>(before - pinned));
  if (pinned <= before) return;
  all_pinned.fetch_add(static_cast<uint32_t>(pinned - before));
  note_cleaned(writes, kCleanedTogether);  // for who waits that is as good
}

// Of the pages of the buffer, which are in order, those of this cache that this process has
// written.
void SharedWriter::store_leaving(PageCache& cache, std::span<const uint64_t> leaving) {
  OC_ASSERT(std::is_sorted(leaving.begin(), leaving.end()));
  const Marks& marks = SharedWriteBack::marks_of(cache);
  const Marks::InHand in_hand(buffer_->member());
  Marks::Look look(marks, in_hand);
  const uint64_t base = cache.shared->first_frame_page(), run_pages = write_back_.run_pages_max();
  uint64_t group = 0, group_end = 0, cleaned_before = write_back_.cleaned();
  auto at = std::lower_bound(leaving.begin(), leaving.end(), base);
  const auto end = std::lower_bound(at, leaving.end(), base + cache.page_count());
  const auto can_go = [&](uint64_t page) {
    if (page >= group_end && !marks.next_group(page, &group, &group_end)) return false;
    return page >= group && page < group_end && look.is_mine(page);
  };
  while (at != end && is_ending_.load() == 0) {
    const uint64_t first = *at++ - base;
    if (!can_go(first)) continue;
    uint64_t stop = first + 1;
    while (at != end && *at - base == stop && stop - first < run_pages && can_go(stop))
      ++stop, ++at;
    bool is_skipped = false;
    const int error = write_back_.store_run(cache, first, stop, Whose::kOwn, &is_skipped);
    if (error == SharedWriteBack::kLater) break;  // it may be so for the others, too
    note_failed(cache, error, first);
    if (write_back_.cleaned() - cleaned_before < kCleanedTogether) continue;
    cleaned_before = write_back_.cleaned();
    buffer_->room().ring();  // somebody is waiting for them
  }
}

// Returns whether something has become clean.
bool SharedWriter::pass(PageCache& cache, std::span<const uint64_t> leaving, bool is_asked) {
  SharedWrites& writes = *cache.writes;
  const uint64_t pages = cache.page_count();
  count_pinned(cache);
  const uint64_t cleaned_before = write_back_.cleaned();
  const bool has_stored_adopted =
      SharedWriteBack::marks_of(cache).adopt() && store_adopted(cache) == 0;
  const auto may_go_on = [&] {
    return writes.flushes.load() == 0 || is_over_share(cache, Written::kMost);
  };
  // Who is alone is asked without being told for which pages.
  const bool is_alone = buffer_->member().board().never_had_company();
  bool is_wanted = (is_asked && is_alone) || (may_go_on() && is_over_share(cache, Written::kMuch));
  store_leaving(cache, leaving);
  for (int rounds = 0; is_wanted && rounds < 16 && is_ending_.load() == 0; ++rounds) {
    uint64_t next = 0;
    const int error =
        write_back_.store(cache, writes.next_page, pages, Whose::kOwn, kPagesAtOnce, &next);
    note_failed(cache, error, writes.next_page);
    writes.next_page = next >= pages ? 0 : next;
    is_wanted = error == 0 && may_go_on() && is_over_share(cache, Written::kLittle);
  }
  if (!has_stored_adopted && write_back_.cleaned() == cleaned_before) return false;
  note_cleaned(writes, kCleanedTogether);
  free_marks(cache);
  return true;
}

// Marks take memory, a page for 512, also where none is set any more.
void SharedWriter::free_marks(PageCache& cache) {
  buffer::Buffer& buffer = cache.shared->buffer();
  const uint64_t limit = SharedFiller::limit_bytes(cache);
  const uint64_t taken = buffer::kept_by_members(buffer.member().board()).private_bytes;
  if (buffer.member().occupancy().marks_bytes() < (limit - std::min(limit, taken)) / kOfMarks)
    return;
  uint64_t group = 0, end = 0;
  for (uint64_t from = 0; SharedWriteBack::marks_of(cache).next_group(from, &group, &end);
       from = end)
    for (uint64_t page = base::round_down(group, Marks::kGroup); page < end; page += Marks::kGroup)
      static_cast<void>(buffer.puncher().punch_marks(cache.shared->first_frame_page() + page));
}

}  // namespace outcore::paging
