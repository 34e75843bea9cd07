#include "core/paging/failed_pages.h"

#include <cerrno>

#include "core/base/assert.h"
#include "core/os/wait.h"
#include "core/paging/fault_reason.h"

namespace outcore::paging {

using region::PageState;
using region::PageValue;
using region::View;

namespace {

// The kernel does not make the touch fail. The thread faults again and again and keeps an event
// thread busy, and there are no correct bytes to map. If that goes on for a second the program
// ends.
void give_up_poisoning(PageCache& cache, uint64_t page, const std::byte* address, int error) {
  constexpr uint64_t kNsMax = 1'000'000'000, kLongAgoNs = 10 * kNsMax;
  os::yield();
  const uint64_t now_ns = os::now_ns();
  uint64_t since_ns = cache.unpoisoned_ns.load(std::memory_order_relaxed);
  if (since_ns == 0 || now_ns - since_ns > kLongAgoNs)
    cache.unpoisoned_ns.store(since_ns = now_ns, std::memory_order_relaxed);
  if (now_ns - since_ns < kNsMax) return;
  explain(cache, page, address, error);
  end_for_fault("; and the kernel refuses to make the touch fail, so the program ends");
}

}  // namespace

bool poison_page(View& view, uint64_t page, std::byte* address, int error) {
  OC_CHECK(error < 0);
  PageCache& cache = *view.cache;
  region::PageWord& word = cache.words[page];
  PageValue seen = word.load();
  cache.touched.add(page);
  if ((seen.state() != PageState::kAbsent && seen.state() != PageState::kFailed) ||
      !word.change(seen, PageValue().with(PageState::kFilling)))
    return false;
  if (cache.is_frozen.load(std::memory_order_seq_cst)) {  // asked again now that the page is ours
    word.update([&](PageValue) { return seen; });
    return false;
  }
  const int result = cache.frames->poison(view.system_page_at(address));
  word.update([&](PageValue v) {
    return v.with(PageState::kFailed).with_frame(static_cast<uint32_t>(-error));
  });
  if (result == 0)
    cache.unpoisoned_ns.store(0, std::memory_order_relaxed);
  else
    give_up_poisoning(cache, page, address, error);
  return result == 0;
}

bool retry_failed(PageCache& cache, uint64_t first, uint64_t end) {
  OC_ASSERT(end <= cache.page_count());
  bool is_forgotten = true;
  for (uint64_t page = first; page < end; ++page) {
    region::PageWord& word = cache.words[page];
    PageValue seen = word.load();
    if (seen.state() != PageState::kFailed ||
        !word.change(seen, PageValue().with(PageState::kFilling)))
      continue;
    // The page is ours meanwhile, or bytes that were just filled would go with the poison.
    int result = 0;
    cache.retries.fetch_add(1, std::memory_order_seq_cst);
    for (uint32_t i = 0; i < cache.views_end.load(std::memory_order_acquire); ++i) {
      const region::View* view = cache.views[i].load(std::memory_order_seq_cst);
      if (view == nullptr) continue;
      if (const os::Piece piece = view->piece_of(page); piece.size_bytes != 0)
        if (const int r = cache.frames->forget_poison(piece); r != 0) result = r;
    }
    const uint32_t retries = cache.retries.fetch_sub(1, std::memory_order_release);
    OC_CHECK(retries != 0);
    OC_ASSERT(word.glance() == PageState::kFilling);
    word.update([&](PageValue) { return result == 0 ? PageValue() : seen; });
    is_forgotten = is_forgotten && result == 0;
  }
  return is_forgotten;
}

}  // namespace outcore::paging
