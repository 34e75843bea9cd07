#include "core/paging/flush_work.h"

#include <algorithm>
#include <cerrno>
#include <exception>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/unseen_by_tsan.h"

namespace outcore::paging {

using region::PageState;
using region::PageValue;

namespace {

enum class Claim { kNothing, kOurs, kBusy, kFailed };

// kOurs: the page carries our kWriting, and `written` says what is to be stored. kBusy: somebody
// else changes it, and `busy` is what to wait for. kFailed: what was written cannot be asked, and
// `failed` is the error.
Claim claim_written(PageCache& cache, uint64_t page, os::SubpageSet* written, PageValue* busy,
                    int* failed) {
  region::PageWord& word = cache.words[page];
  for (;;) {
    PageValue seen = word.load();
    const PageState state = seen.state();
    if (state == PageState::kAbsent || state == PageState::kFailed) return Claim::kNothing;
    if (state == PageState::kLeaving && seen.has(PageValue::kCleaned)) return Claim::kNothing;
    if (state != PageState::kResident || seen.has(PageValue::kWriting)) {
      *busy = seen;
      return Claim::kBusy;
    }
    if (cache.frames->has_write_faults() && !seen.has(PageValue::kDirty)) return Claim::kNothing;
    // Busy while it is asked: a write fault in the middle would be let through and then forgotten.
    if (!word.change(seen, seen.with(PageState::kBusy).plus(PageValue::kWriting))) continue;
    // The kernel may write to pinned memory without a trace: what is pinned and written stays so.
    const bool must_clear = seen.pins() == 0;
    if (const int error = cache.collect_written(page, must_clear, written); error != 0) {
      word.update(
          [&](PageValue v) { return v.with(PageState::kResident).minus(PageValue::kWriting); });
      *failed = error;  // all of the page counts as written: PageCache::collect_written
      return Claim::kFailed;
    }
    if (!cache.frames->reports_written())
      written->add_range(0, cache.page_bytes / base::kSystemPage);
    OC_ASSERT(word.glance() == PageState::kBusy);
    const uint64_t clean = cache.frames->has_write_faults() && must_clear ? PageValue::kDirty : 0;
    const bool is_empty = written->is_empty(cache.page_bytes / base::kSystemPage);
    if (!is_empty) cache.note_cleaning(page);
    word.update([&](PageValue v) {
      return v.with(PageState::kResident).minus(clean | (is_empty ? PageValue::kWriting : 0));
    });
    return is_empty ? Claim::kNothing : Claim::kOurs;
  }
}

// Neighbouring pages that nobody else changes: all of them claimed at once, for one question to the
// kernel instead of one a page. `written` counts from the first. How many carry our kWriting: less
// than two are not worth it, and 0 after an error, too, which who asks page by page is told.
uint64_t claim_written_run(PageCache& cache, uint64_t first, uint64_t end,
                           os::SubpageSet* written) {
  OC_CHECK(first < end);
  OC_CHECK((end - first) * (cache.page_bytes / base::kSystemPage) <= os::SubpageSet::kCount);
  const bool has_write_faults = cache.frames->has_write_faults();
  const auto claim = [&](uint64_t page) {
    PageValue seen = cache.words[page].load();
    return seen.state() == PageState::kResident && seen.pins() == 0 &&
           !seen.has(PageValue::kWriting) && (!has_write_faults || seen.has(PageValue::kDirty)) &&
           cache.words[page].change(seen, seen.with(PageState::kBusy).plus(PageValue::kWriting));
  };
  uint64_t claimed = first;
  while (claimed < end && claim(claimed)) ++claimed;
  const auto release = [&](uint64_t page, uint64_t flags) {
    OC_ASSERT(cache.words[page].glance() == PageState::kBusy);
    OC_ASSERT(cache.words[page].peek().has(PageValue::kWriting));
    cache.words[page].update(
        [&](PageValue v) { return v.with(PageState::kResident).minus(flags); });
  };
  const int error =
      claimed - first < 2 ? -EAGAIN : cache.collect_written_between(first, claimed, written);
  const uint64_t subpages = cache.page_bytes / base::kSystemPage;
  for (uint64_t page = first; page < claimed; ++page) {
    // A page with write faults is here because it was written.
    bool is_written = !cache.frames->reports_written() || (has_write_faults && subpages == 1);
    if (is_written) written->add_range((page - first) * subpages, (page - first + 1) * subpages);
    for (uint64_t i = 0; i < subpages && !is_written; ++i)
      is_written = written->has((page - first) * subpages + i);
    const uint64_t clean = has_write_faults ? PageValue::kDirty : 0;
    if (is_written) cache.note_cleaning(page);
    release(page, error != 0   ? PageValue::kWriting
                  : is_written ? clean
                               : clean | PageValue::kWriting);
  }
  return error == 0 ? claimed - first : 0;
}

}  // namespace

void FlushWork::run() {
  work(true);
  for (std::thread& helper : helpers_)
    if (helper.joinable()) helper.join();
}

void FlushWork::work(bool is_first) {
  FlushBuffer buffer(cache_, bounce_, stall_);
  for (uint64_t at = 0, end = 0; !is_over_.load(std::memory_order_relaxed);) {
    if (at == end) {
      at = next_.fetch_add(stretch_, std::memory_order_relaxed);
      end = std::min(at + stretch_, end_);
      if (at >= end_) break;
    }
    if (cache_.epoch.is_closed()) buffer.finish();  // a cut waits for us, and we for it
    buffer.begin();
    at += flush_some(buffer, at, end);
    if (buffer.error() == -ETIMEDOUT && on_timeout_ == OnTimeout::kStop)
      is_over_.store(true, std::memory_order_relaxed);
    if (is_first && may_have_helpers_ && buffer.stored_bytes() > 0) {
      may_have_helpers_ = false;
      buffer.finish();  // the new threads' memory may come from anywhere
      start_helpers();
    }
  }
  buffer.finish();
  const os::SignalBlock block;
  const os::Locked locked(lock_);
  stored_bytes_ += buffer.stored_bytes();
  if (failed_.result == 0 && buffer.error() != 0) {
    failed_ = buffer.failed();
    failed_.result = buffer.error();
  }
}

// Of [at, end) the first pages that are in the store only: nearly all of a large region that is
// hardly used, so that they get one look each and no more, and most of them none.
uint64_t FlushWork::count_absent(uint64_t at, uint64_t end) const {
  const uint64_t first = at;
  for (; at < end; ++at) {
    if (listed_ == nullptr && (at = cache_.touched.next(at, end)) == end) break;
    if (cache_.words[page_at(at)].load().state() != PageState::kAbsent) break;
  }
  return at - first;
}

// Of [at, end) the first few. How many are done with.
uint64_t FlushWork::flush_some(FlushBuffer& buffer, uint64_t at, uint64_t end) {
  OC_CHECK(at < end);
  OC_CHECK(end <= end_);
  if (const uint64_t absent = count_absent(at, end); absent != 0) return absent;
  const uint64_t page = page_at(at), subpages = cache_.page_bytes / base::kSystemPage;
  uint64_t neighbours = listed_ == nullptr ? end - at : 1;
  OC_CHECK(page < cache_.page_count());
  while (at + neighbours < end && page_at(at + neighbours) == page + neighbours) ++neighbours;
  os::SubpageSet written;
  if (neighbours > 1 && neighbours * subpages <= os::SubpageSet::kCount) {
    const uint64_t run = claim_written_run(cache_, page, page + neighbours, &written);
    for (uint64_t i = 0; i < run; ++i) {
      os::SubpageSet of_page;
      for (uint64_t s = 0; s < subpages; ++s)
        if (written.has(i * subpages + s)) of_page.add(s);
      if (!of_page.is_empty(subpages)) buffer.add(page + i, of_page);
    }
    if (run > 0) return run;
    written = {};
  }
  PageValue busy;
  int failed = 0;
  switch (claim_written(cache_, page, &written, &busy, &failed)) {
    case Claim::kBusy:
      buffer.finish();  // whoever has that page may wait for one that we hold, or for the buffer
      cache_.words[page].wait_while(busy, 100'000'000);
      return 0;
    case Claim::kOurs:
      buffer.add(page, written);
      break;
    case Claim::kFailed:
      buffer.note({page * cache_.page_bytes, nullptr, cache_.page_bytes, true, failed});
      break;
    case Claim::kNothing:
      break;
  }
  return 1;
}

// Whoever has much to flush: a thread for each further stretch.
void FlushWork::start_helpers() {
  const uint64_t at = std::min(next_.load(std::memory_order_relaxed), end_);
  const uint64_t stretches = (end_ - at) / stretch_;
  const uint64_t most = std::min<uint64_t>(kHelpersMax, bounce_.shape().chunk_count / 4);
  const os::SignalBlock block;  // inherited
  try {
    for (std::thread& helper : helpers_) {
      if (static_cast<uint64_t>(&helper - helpers_) >= std::min(stretches, most)) return;
      helper = os::unseen_thread([this] { work(false); });
    }
  } catch (const std::exception&) {  // then there are fewer
  }
}

}  // namespace outcore::paging
