// Flush: dirty bytes of resident pages go to the store while the program goes on. See engine.h.
//
// A page that is being flushed carries kWriting: it is not evicted and not written by anybody else
// meanwhile. Which 4 KiB were written is asked and cleared in one step; a write after that is told
// again, and written again later.
#include <algorithm>
#include <cerrno>

#include "base/assert.h"
#include "base/error.h"
#include "paging/engine.h"

namespace outcore::paging {

using metrics::Counter;
using os::Piece;
using region::PageState;
using region::PageValue;
using region::View;

namespace {

// Flusher: gathers the written runs of pages in a bounce buffer and writes them, neighbours joined.
// It has the buffer only from the first page to finish(): a fill may wait for one.
class Flusher {
 public:
  Flusher(Space& space, budget::BouncePool& bounce) : space_(space), bounce_(bounce) {}

  // Nobody else's epoch ends while we are inside.
  void begin() {
    if (!is_inside_) space_.epoch.enter();
    is_inside_ = true;
  }

  // REQUIRES: begun; the page carries kWriting, which is ours. It is released once its bytes are
  // stored, or have failed.
  void add(uint64_t page, const os::SubpageSet& written) {
    if (buffer_.empty()) buffer_ = bounce_.take(bounce_.shape().chunk_bytes);
    if (held_count_ == kHeldMax) write_all();
    held_[held_count_++] = page;
    const uint64_t start = page * space_.page_bytes;
    const uint64_t store_bytes = space_.store_bytes.load(std::memory_order_acquire);
    const uint64_t end = space_.page_bytes / base::kSystemPage;
    for (uint64_t first = 0, last = 0; written.next_run(last, end, &first, &last);) {
      const uint64_t to = std::min(start + last * base::kSystemPage, store_bytes);
      for (uint64_t from = start + first * base::kSystemPage; from < to;)
        from += add_run(from, to - from);
    }
  }

  // Everything that was added is stored, or the first error is noted.
  void finish() {
    write_all();
    for (uint32_t i = 0; i < held_count_; ++i) let_go(held_[i]);
    held_count_ = 0;
    if (!buffer_.empty()) bounce_.give(buffer_);
    buffer_ = {};
    if (is_inside_) space_.epoch.leave();
    is_inside_ = false;
  }
  // What could not even be asked for.
  void note(const StoreRequest& request) {
    space_.counters.add(Counter::write_back_errors, 1);
    space_.is_degraded.store(true, std::memory_order_relaxed);
    if (error_ == 0) error_ = request.result, failed_ = request;
  }
  int error() const { return error_; }
  uint64_t stored_bytes() const { return stored_bytes_; }
  const StoreRequest& failed() const { return failed_; }

 private:
  static constexpr uint32_t kHeldMax = 256, kRequestsMax = 64;

  uint64_t add_run(uint64_t offset, uint64_t size_bytes) {
    if (used_ == buffer_.size()) write_all();
    const uint64_t bytes = std::min<uint64_t>(size_bytes, buffer_.size() - used_);
    StoreRequest* last = request_count_ == 0 ? nullptr : &request_[request_count_ - 1];
    const bool is_joined = last != nullptr && last->offset + last->size_bytes == offset;
    if (!is_joined && request_count_ == kRequestsMax) {
      write_all();
      return 0;
    }
    Piece piece{nullptr, offset, base::round_up(bytes, base::kSystemPage), true, 0};
    if (!space_.frames->can_share())
      space_.for_each_showing(offset / space_.page_bytes,
                              [&](View& v) { piece.address = v.address + (offset - v.offset); });
    const int result = space_.frames->copy_out(piece, buffer_.data() + used_);
    if (result != 0) {  // nothing of it may reach the store
      fail({offset, nullptr, bytes, true, result});
      return bytes;
    }
    if (is_joined)
      last->size_bytes += bytes;
    else
      request_[request_count_++] = {offset, buffer_.data() + used_, bytes, true, 0};
    used_ += piece.size_bytes;
    return bytes;
  }

  void write_all() {
    for (uint32_t begin = 0; begin < request_count_;) {
      const uint32_t at_once = space_.write_gate.enter(request_count_ - begin);
      const std::span<StoreRequest> batch{request_ + begin, at_once};
      space_.store.load()->transfer(batch);
      space_.write_gate.leave(at_once);
      for (const StoreRequest& request : batch) account(request);
      begin += at_once;
    }
    request_count_ = 0;
    used_ = 0;
    // The last page may have more to write.
    for (uint32_t i = 0; i + 1 < held_count_; ++i) let_go(held_[i]);
    if (held_count_ > 1) held_[0] = held_[held_count_ - 1], held_count_ = 1;
  }

  void account(const StoreRequest& request) {
    space_.counters.add(Counter::write_requests, 1);
    space_.counters.add(Counter::written_bytes, request.size_bytes);
    if (request.result != 0) fail(request);
    stored_bytes_ += request.result == 0 ? request.size_bytes : 0;
  }

  void fail(const StoreRequest& request) {
    note(request);
    // Not stored: written again, as far as anybody asks.
    const uint64_t end = request.offset + request.size_bytes;
    for (uint64_t page = request.offset / space_.page_bytes; page * space_.page_bytes < end;
         ++page) {
      space_.restore_written(page, request.offset, end);
      if (space_.frames->has_write_faults())
        space_.words[page].update([](PageValue v) { return v.plus(PageValue::kDirty); });
    }
  }

  void let_go(uint64_t page) {
    space_.counters.add(Counter::write_backs, 1);
    space_.words[page].update([](PageValue v) { return v.minus(PageValue::kWriting); });
  }

  Space& space_;
  budget::BouncePool& bounce_;
  std::span<std::byte> buffer_;
  StoreRequest request_[kRequestsMax];
  uint32_t request_count_ = 0;
  uint64_t held_[kHeldMax];
  uint32_t held_count_ = 0;
  uint64_t used_ = 0;
  bool is_inside_ = false;
  uint64_t stored_bytes_ = 0;
  int error_ = 0;
  StoreRequest failed_;
};

enum class Taken { kNothing, kOurs, kBusy, kFailed };

// kOurs: the page carries our kWriting, and `written` says what is to be stored. kBusy: somebody
// else changes it, and `busy` is what to wait for. kFailed: what was written cannot be asked, and
// `failed` is the error.
Taken take_written(Space& space, uint64_t page, os::SubpageSet* written, PageValue* busy,
                   int* failed) {
  region::PageWord& word = space.words[page];
  for (;;) {
    PageValue seen = word.load();
    const PageState state = seen.state();
    if (state == PageState::kAbsent || state == PageState::kFailed) return Taken::kNothing;
    if (state == PageState::kLeaving && seen.has(PageValue::kCleaned)) return Taken::kNothing;
    if (state != PageState::kResident || seen.has(PageValue::kWriting)) {
      *busy = seen;
      return Taken::kBusy;
    }
    if (space.frames->has_write_faults() && !seen.has(PageValue::kDirty)) return Taken::kNothing;
    // Busy while it is asked: a write fault in the middle would be let through and then forgotten.
    if (!word.change(seen, seen.with(PageState::kBusy).plus(PageValue::kWriting))) continue;
    // The kernel may write to pinned memory without a trace: what is pinned and written stays so.
    const bool must_clear = seen.pins() == 0;
    if (const int error = space.take_written(page, must_clear, written); error != 0) {
      word.update(
          [&](PageValue v) { return v.with(PageState::kResident).minus(PageValue::kWriting); });
      *failed = error;  // all of the page counts as written: Space::take_written
      return Taken::kFailed;
    }
    if (!space.frames->reports_written())
      written->add_range(0, space.page_bytes / base::kSystemPage);
    const uint64_t clean = space.frames->has_write_faults() && must_clear ? PageValue::kDirty : 0;
    const bool is_empty = written->is_empty(space.page_bytes / base::kSystemPage);
    word.update([&](PageValue v) {
      return v.with(PageState::kResident).minus(clean | (is_empty ? PageValue::kWriting : 0));
    });
    return is_empty ? Taken::kNothing : Taken::kOurs;
  }
}

Error write_failed(const Space& space, int code, uint64_t offset, uint64_t size_bytes) {
  return base::system_error(code,
                            "write " + std::to_string(size_bytes) + " bytes at " +
                                std::to_string(offset) + " of " + space.uri,
                            "the bytes stay in memory while the region is mapped: make room or "
                            "repair the store, then flush again");
}

}  // namespace

Status Engine::take_write_error(Space& space) {
  const int code = space.write_error.code.exchange(0);
  if (code == 0) return {};
  return write_failed(space, code, space.write_error.offset.load(),
                      space.write_error.size_bytes.load());
}

namespace {

constexpr uint64_t kNoPage = UINT64_MAX;

// Flushes the pages that next() names, until it says kNoPage.
template <typename Next>
void flush_each(Space& space, Flusher& flusher, Engine::OnTimeout on_timeout, const Next& next) {
  for (uint64_t page = next(); page != kNoPage;) {
    if (space.epoch.is_closed()) flusher.finish();  // a cut waits for us, and we for it
    flusher.begin();
    os::SubpageSet written;
    PageValue busy;
    int failed = 0;
    const Taken taken = take_written(space, page, &written, &busy, &failed);
    if (taken == Taken::kBusy) {
      flusher.finish();  // whoever has that page may wait for one that we hold, or for the buffer
      space.words[page].wait_while(busy, 100'000'000);
      continue;
    }
    if (taken == Taken::kOurs) flusher.add(page, written);
    if (taken == Taken::kFailed)
      flusher.note({page * space.page_bytes, nullptr, space.page_bytes, true, failed});
    page = next();
    if (flusher.error() == -ETIMEDOUT && on_timeout == Engine::OnTimeout::kStop) break;
  }
  flusher.finish();
}

}  // namespace

Status Engine::flush(Space& space, uint64_t first, uint64_t end, OnTimeout on_timeout) {
  space.counters.add(Counter::flushes, 1);
  if (!space.is_writable) return {};
  Flusher flusher(space, bounce_);
  uint64_t page = first;
  flush_each(space, flusher, on_timeout, [&] { return page < end ? page++ : kNoPage; });
  if (flusher.error() != 0) {
    space.write_error.code = 0;
    const StoreRequest& failed = flusher.failed();
    return write_failed(space, flusher.error(), failed.offset, failed.size_bytes);
  }
  Status earlier = take_write_error(space);
  if (earlier.ok() && first == 0 && end >= space.page_count()) space.is_degraded = false;
  return earlier;
}

// Errors of earlier write-backs stay for the next flush: what could not be written is dirty still.
Status Engine::flush_listed(Space& space, std::span<const uint64_t> pages, uint64_t* stored_bytes) {
  Flusher flusher(space, bounce_);
  size_t i = 0;
  flush_each(space, flusher, OnTimeout::kStop,
             [&] { return i < pages.size() ? pages[i++] : kNoPage; });
  *stored_bytes += flusher.stored_bytes();
  if (flusher.error() == 0) return {};
  const StoreRequest& failed = flusher.failed();
  return write_failed(space, flusher.error(), failed.offset, failed.size_bytes);
}

}  // namespace outcore::paging
