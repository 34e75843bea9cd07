// PageCache: the pages of one store, their states and frames, and the views that show them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/assert.h"
#include "core/base/probe.h"
#include "core/buffer/shared_file.h"
#include "core/metrics/counter_block.h"
#include "core/os/address_space.h"
#include "core/os/buffer_frames.h"
#include "core/os/epoch_gate.h"
#include "core/os/frames.h"
#include "core/paging/change_log.h"
#include "core/paging/cleaned_times.h"
#include "core/paging/gate.h"
#include "core/paging/shared_writes.h"
#include "core/paging/write_failures.h"
#include "core/prefetch/fetch_tuner.h"
#include "core/prefetch/stream_lengths.h"
#include "core/prefetch/touch_log.h"
#include "core/published/sheet.h"
#include "core/region/page_word.h"
#include "core/region/touched_groups.h"
#include "core/region/view.h"
#include "core/store/store_calls.h"
#include "outcore/options.h"
#include "outcore/policy.h"
#include "outcore/store.h"

namespace outcore::paging {

class FaultPath;

// CurrentFrames: the frames of a cache. They are replaced when a second view comes; the old ones
// stay, empty, for threads that looked at them a moment before.
class CurrentFrames {
 public:
  CurrentFrames& operator=(std::unique_ptr<os::Frames> frames) {
    OC_CHECK(frames != nullptr);
    current_.store(frames.get(), std::memory_order_release);
    owned_.push_back(std::move(frames));
    return *this;
  }
  explicit operator bool() const { return current_.load(std::memory_order_acquire) != nullptr; }
  os::Frames* operator->() const { return current_.load(std::memory_order_acquire); }
  os::Frames& operator*() const { return *current_.load(std::memory_order_acquire); }

 private:
  std::atomic<os::Frames*> current_{nullptr};
  std::vector<std::unique_ptr<os::Frames>> owned_;
};

struct PageCache {
  static constexpr uint32_t kViewsMax = 1 << 16;

  FaultPath* fault_path = nullptr;  // answers the faults of its pages
  CleanedTimes* cleaned = nullptr;  // the pager's
  uint32_t id = 0;
  // Changes at most once: when a store that was opened read-only gets a writable view. The old one
  // lives on in `owned`.
  std::atomic<Store*> store{nullptr};
  std::vector<std::shared_ptr<Store>> owned;
  StoreTraits traits;
  std::string uri;
  std::atomic<uint64_t> store_bytes{0};  // never becomes smaller
  uint64_t page_bytes = 0;
  std::atomic<bool> is_writable{false};  // some view is writable, or was
  // Fills wait: the frames are being replaced by another kind.
  std::atomic<bool> is_frozen{false};
  // Its contents are addresses of this process, which mean nothing to another process.
  std::atomic<bool> is_of_addresses{false};
  // Frozen for good: something else is mapped where the views were.
  std::atomic<bool> is_handed_to_kernel{false};
  // Pages that are taken out of memory one by one, while the program touches them: what is not out
  // yet is not brought in again, nor made writable. Set by the holder of the mapping lock.
  std::atomic<uint64_t> closing_first{0}, closing_end{0};
  bool is_closing(uint64_t page) const {
    return page < closing_end.load(std::memory_order_acquire) &&
           page >= closing_first.load(std::memory_order_relaxed);
  }
  Delivery delivery = Delivery::kAuto;
  os::Table<region::PageWord> words;
  region::TouchedGroups touched;  // which of them were ever changed
  // A bit a page: it was evicted; in a buffer: this process brought it in. Empty: not recorded.
  os::Table<std::atomic<uint64_t>> was_here;
  CurrentFrames frames;
  // Not nullptr: the pages are in a buffer that other processes share. Then every page's state here
  // is Absent: only the kernel knows which are in memory (SharedFiller). Constant.
  std::unique_ptr<buffer::SharedFile> shared;
  std::unique_ptr<SharedWrites> writes;  // not nullptr: this process writes them, too. Constant
  // Replaces frames that have write faults by shared ones that have none; empty: it is not
  // possible, or the program chose the frames itself. A prefetch thread calls it, and holds a view.
  std::function<void()> share_frames;
  std::atomic<uint32_t> late_writes{0}, fills_since_look{0};
  os::Table<std::atomic<region::View*>> views;  // with holes
  std::atomic<uint32_t> views_end{0}, view_count{0};
  // Threads in retry_failed: they look at views and hold nothing else that remove_view waits for.
  std::atomic<uint32_t> retries{0};
  const published::Entry entry;  // what others may see of it
  std::atomic<uint64_t> resident_bytes{0};
  // Pages in memory that are zeros because their read failed; and whether there were any since the
  // last retry_failed: the program may have used the zeros, also if the pages have left since.
  std::atomic<uint64_t> zeroed_pages{0};
  std::atomic<bool> has_zeroed{false};
  std::atomic<uint64_t> unpoisoned_ns{0};  // since when the kernel refuses poison; 0: it does not
  WriteFailures write_failures{entry->is_degraded};
  Gate read_gate, write_gate;
  os::EpochGate epoch;
  metrics::CounterBlock& counters = entry->counters;
  prefetch::FetchHistory fetches{entry->fetches};     // learnt from its misses
  prefetch::StreamLengths stream_lengths;             // learnt from its streams
  std::atomic<ChangeLog*> changes{nullptr};           // ours; made by log_changes()
  std::atomic<prefetch::TouchLog*> touches{nullptr};  // of a learner, which lives longer

  PageCache() = default;
  explicit PageCache(std::shared_ptr<published::Sheet> sheet) : entry(std::move(sheet)) {}
  ~PageCache() { delete changes.load(); }
  PageCache(const PageCache&) = delete;
  PageCache& operator=(const PageCache&) = delete;

  // Of as many pages. REQUIRES: called once, before use.
  Status allocate_words(uint64_t pages) {
    if (Status s = words.allocate(pages); !s) return s;
    return touched.allocate(pages);
  }
  uint64_t page_count() const { return words.count(); }  // may be more than the store has now
  // How many pages the store has now.
  uint64_t stored_pages() const {
    const uint64_t bytes = store_bytes.load(std::memory_order_acquire);
    return std::min(base::round_up(bytes, page_bytes) / page_bytes, page_count());
  }
  PageKey key_of(uint64_t page) const {
    uint64_t x = page * 0x9E3779B97F4A7C15ull + id * 0xD1B54A32D192ED03ull;
    x ^= x >> 32, x *= 0xD6E8FEB86659FD93ull, x ^= x >> 32;
    return x;
  }

  bool is_degraded() const { return write_failures.is_any() || has_zeroed.load(); }

  // Whether the page is absent; may be out of date. For choosing what else to bring in.
  bool seems_absent(uint64_t page) const {
    if (shared == nullptr) return words[page].glance() == region::PageState::kAbsent;
    unsigned char present = 0;
    const uint32_t end = views_end.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < end; ++i) {
      const region::View* view = views[i].load(std::memory_order_acquire);
      if (view == nullptr || page < view->first_page() || page >= view->end_page()) continue;
      const os::Piece piece = view->piece_of(page);
      if (piece.size_bytes == 0) return false;  // the view is going, or grew in vain
      return os::look_up_presence(piece.address, piece.size_bytes, &present) == 0 &&
             (present & 1) == 0;
    }
    return false;
  }

  // Makes an absent page Filling. The caller must then fill it or abandon it. False: the page is
  // not absent any more, or the cache is frozen.
  bool claim(uint64_t page) {
    using region::PageState;
    region::PageValue seen = words[page].load();
    if (seen.state() != PageState::kAbsent || is_frozen.load(std::memory_order_acquire))
      return false;
    touched.add(page);
    if (!words[page].change(seen, seen.with(PageState::kFilling))) return false;
    // Asked again now that the page is ours: whoever froze the cache waits for it.
    if (!is_frozen.load(std::memory_order_seq_cst)) return true;
    abandon(page);
    return false;
  }
  void abandon(uint64_t page) {
    OC_ASSERT(words[page].glance() == region::PageState::kFilling);
    words[page].update([](region::PageValue v) { return v.with(region::PageState::kAbsent); });
  }

  // Whether the store has nothing there, so that the bytes are zeros. False for a file that other
  // processes write, too, as its store does not know.
  bool is_hole(uint64_t start, uint64_t size_bytes) const {
    return writes == nullptr && store::is_hole(*store.load(), start, size_bytes);
  }
  // How many of the bytes from `start` on the store has; those past its end are zeros.
  uint64_t stored_bytes(uint64_t start, uint64_t size_bytes) const {
    const uint64_t end = store_bytes.load(std::memory_order_acquire);
    return start >= end ? 0 : std::min(size_bytes, end - start);
  }

  // Publishes an event, if a process watches. The fault path.
  void publish(published::EventKind kind, uint64_t page) const {
    if (entry.is_watched()) entry.publish(kind, page);
  }

  // Notes that these bytes of the store change, or may change. Called before the write is done.
  void note_change(uint64_t offset, uint64_t size_bytes) const {
    if (ChangeLog* log = changes.load(std::memory_order_acquire); log != nullptr)
      log->note(offset, size_bytes);
  }
  // Notes that a page leaves memory. Called before its word says so, and so before a thread that
  // brings it in again publishes that.
  void note_eviction(uint64_t page) {
    counters.add(metrics::Counter::evictions, 1);
    entry->resident_bytes.fetch_sub(page_bytes, std::memory_order_relaxed);
    publish(published::EventKind::kEviction, page);
    OC_PROBE(evict, id, page, page_bytes);
    if (page / 64 < was_here.count())
      was_here[page / 64].fetch_or(uint64_t{1} << page % 64, std::memory_order_relaxed);
  }
  // The pages are discarded: if one comes in next, it has other bytes, and does not come again.
  void note_discard(uint64_t first, uint64_t end) {
    for (uint64_t page = first; page < end && page / 64 < was_here.count(); ++page)
      if (std::atomic<uint64_t>& bits = was_here[page / 64];
          (bits.load(std::memory_order_relaxed) >> page % 64 & 1) != 0)
        bits.fetch_and(~(uint64_t{1} << page % 64), std::memory_order_relaxed);
  }
  // Whether the page, which is brought in now, had been in memory before. In a buffer another
  // process may have evicted it without notice; but if this process brought it in once and has to
  // bring it in again, it has left meanwhile. What other processes brought in earlier is not known.
  bool comes_again(uint64_t page) {
    if (page / 64 >= was_here.count()) return false;
    std::atomic<uint64_t>& bits = was_here[page / 64];
    const uint64_t bit = uint64_t{1} << page % 64;
    if ((bits.load(std::memory_order_relaxed) & bit) != 0) return true;
    if (shared != nullptr) bits.fetch_or(bit, std::memory_order_relaxed);
    return false;
  }
  // The page is brought in; `is_guess`: not asked for, but with another. The fault path.
  void note_fill(uint64_t page, bool is_guess) {
    publish(is_guess ? published::EventKind::kGuess : published::EventKind::kFill, page);
    OC_PROBE(fill, id, page, page_bytes);
    if (comes_again(page)) counters.add(metrics::Counter::refaults, 1);
    if (prefetch::TouchLog* log = touches.load(std::memory_order_acquire); log != nullptr)
      log->note(page * page_bytes, page_bytes);
  }
  // From now on changes are logged, except those of writes that are under way. False: they were
  // logged already. Any thread but the fault path.
  Result<bool> log_changes() {
    if (changes.load() != nullptr) return false;
    auto log = ChangeLog::make(page_count() * page_bytes);
    if (!log) return log.error();
    ChangeLog* none = nullptr;
    if (!changes.compare_exchange_strong(none, log->get())) return false;
    static_cast<void>(log->release());
    return true;
  }

  // Adds to `written` the parts of the page that were written through any view; all parts if the
  // kernel cannot say.
  void look_at_written(uint64_t page, os::SubpageSet* written) const {
    for_each_showing(page, [&](region::View& view) {
      if (!view.is_writable) return;
      if (frames->collect(view.piece_of(page), false, written) != 0)
        written->add_range(0, page_bytes / base::kSystemPage);
    });
  }
  // The page, which was written, is about to be clean.
  void note_cleaning(uint64_t page) const { cleaned->note(key_of(page)); }
  // Whether a write of the page that was heard of at this time may be over.
  bool is_late_write(uint64_t page, uint64_t heard_ns) const {
    return heard_ns != CleanedTimes::kNever && cleaned->is_late(key_of(page), heard_ns);
  }

  // The same; with `clear` the page is clean afterwards. -errno: the kernel cannot say, and the
  // whole page counts as written.
  int collect_written(uint64_t page, bool clear, os::SubpageSet* written) const {
    OC_ASSERT(page < page_count());
    int error = 0;
    for_each_showing(page, [&](region::View& view) {
      if (!view.is_writable) return;
      const int result = frames->collect(view.piece_of(page), clear, written);
      if (result != 0) error = result;
    });
    if (error != 0) restore_written(page, page * page_bytes, (page + 1) * page_bytes);
    return error;
  }

  // The same for neighbouring pages [first, end), at most 16 MiB; parts count from `first` on. With
  // `clear` they are clean afterwards. -errno: the kernel cannot say.
  int ask_written_between(uint64_t first, uint64_t end, bool clear, os::SubpageSet* written) const {
    OC_CHECK(first < end);
    OC_CHECK((end - first) * page_bytes <= base::kPageBytesMax);
    int error = 0;
    for_each_run_showing(first, end, [&](const region::View& view, const os::Piece& piece) {
      if (!view.is_writable) return;
      if (const int result = frames->collect(piece, clear, written); result != 0) error = result;
    });
    return error;
  }
  // The same with `clear`. -errno: all of the pages count as written.
  int collect_written_between(uint64_t first, uint64_t end, os::SubpageSet* written) const {
    const int error = ask_written_between(first, end, true, written);
    for (uint64_t page = first; page < end && error != 0; ++page)
      restore_written(page, page * page_bytes, (page + 1) * page_bytes);
    return error;
  }

  // A write-back of [from, to) failed: that part of this page counts as written again.
  void restore_written(uint64_t page, uint64_t from, uint64_t to) const {
    OC_ASSERT(page < page_count());
    OC_ASSERT(from < to);
    os::SubpageSet all;
    all.add_range(0, page_bytes / base::kSystemPage);
    for_each_showing(page, [&](region::View& view) {
      const os::Piece part = view.piece_of(page).part(from, to);
      if (view.is_writable && part.size_bytes != 0) frames->restore(part, all);
    });
  }

  // Calls f(view) for every view that may show the page. REQUIRES: the caller holds the turn, or
  // has made the page Busy.
  template <typename F>
  void for_each_showing(uint64_t page, const F& f) const {
    const uint32_t end = views_end.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < end; ++i) {
      region::View* view = views[i].load(std::memory_order_acquire);
      if (view == nullptr || page < view->first_page() || page >= view->end_page()) continue;
      if (!frames->can_share() || view->is_shown(page)) f(*view);
    }
  }
  // The same for neighbouring pages [first, end), stretch by stretch: f(view, piece), whose system
  // pages count from `first`.
  template <typename F>
  void for_each_run_showing(uint64_t first, uint64_t end, const F& f) const {
    const uint32_t count = views_end.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i) {
      region::View* view = views[i].load(std::memory_order_acquire);
      if (view == nullptr) continue;
      const uint64_t to = std::min(end, view->end_page());
      const auto is_there = [&](uint64_t p) { return !frames->can_share() || view->is_shown(p); };
      for (uint64_t page = std::max(first, view->first_page()); page < to; ++page) {
        uint64_t last = page;
        while (last < to && is_there(last)) ++last;
        if (last == page) continue;
        os::Piece piece = view->pieces_of(page, last);
        OC_ASSERT(piece.size_bytes != 0);
        piece.first_subpage +=
            static_cast<uint32_t>((page - first) * page_bytes / base::kSystemPage);
        f(*view, piece);
        page = last;
      }
    }
  }
};

}  // namespace outcore::paging
