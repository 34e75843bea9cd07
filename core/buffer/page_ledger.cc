#include "core/buffer/page_ledger.h"

#include <unistd.h>

#include <algorithm>
#include <new>

#include "core/base/assert.h"

namespace outcore::buffer {
namespace {

uint64_t mix(uint64_t x) {
  x *= 0x9E3779B97F4A7C15ull;
  x ^= x >> 32, x *= 0xD6E8FEB86659FD93ull, x ^= x >> 32;
  return x;
}

}  // namespace

Status PageLedger::open(const Board& board) {
  const auto memory_pages = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES)));
  const uint64_t limit_pages = board.limit_bytes.load() / kPage;
  const uint64_t most = std::max(memory_pages, limit_pages) + 4096;
  if (page_of_.count() == 0)
    if (Status s = page_of_.allocate(std::min<uint64_t>(most, 0xFFFFFFF0)); !s) return s;
  capacity_ = std::min(limit_pages, page_of_.count());
  OC_CHECK(capacity_ <= page_of_.count());
  try {
    Result<std::unique_ptr<Policy>> policy = make_policy("s3-fifo", page_of_.count(), capacity_);
    if (!policy) return policy.error();
    policy_ = std::move(policy).value();
  } catch (const std::bad_alloc&) {
    return Error{ENOMEM, "keep a buffer: no memory"};
  }
  return {};
}

void PageLedger::admit(const Board& board, const PageReport& report) {
  OC_CHECK(policy_ != nullptr);  // open() comes first
  const uint64_t end = report.first_page() + report.count();
  for (uint64_t page = report.first_page(); page < end; ++page) {
    uint64_t first = 0;
    Known* const known = find(board, page, &first);
    if (known == nullptr || known->frame[page - first] != 0) continue;
    uint32_t frame = kNone;
    if (free_ != kNone) {
      frame = free_;
      free_ = static_cast<uint32_t>(page_of_[frame]);
    } else if (frames_used_ < page_of_.count()) {
      frame = frames_used_++;
    } else {
      return;
    }
    OC_CHECK(frame != kNone && frame < frames_used_);
    OC_CHECK(page - first < known->pages);
    page_of_[frame] = page;
    known->frame[page - first] = frame + 1;
    if (report.is_guess())
      policy_->guessed(FrameId{frame}, mix(page));
    else
      policy_->filled(FrameId{frame}, mix(page));
  }
}

PageLedger::Known* PageLedger::find_known(uint64_t page, uint64_t* first) {
  auto after = known_.upper_bound(page);
  if (after == known_.begin()) return nullptr;
  --after;
  *first = after->first;
  return page - after->first < after->second.pages ? &after->second : nullptr;
}

PageLedger::Known* PageLedger::find(const Board& board, uint64_t page, uint64_t* first) try {
  if (Known* const known = find_known(page, first); known != nullptr) return known;
  for (uint32_t i = 0; i < kFilesMax; ++i) {
    const FileRecord& file = board.files[i];
    if (file.state.load() == FileState::kFree || page < file.first_page ||
        page - file.first_page >= file.pages)
      continue;
    Known& made = known_[file.first_page];
    made.index = i;
    made.pages = file.pages;
    if (!made.frame.allocate(file.pages).ok()) {
      known_.erase(file.first_page);
      return nullptr;
    }
    return find_known(page, first);
  }
  return nullptr;
} catch (const std::bad_alloc&) {  // as of a file that nobody knows
  return nullptr;
}

void PageLedger::forget_file(uint32_t index) {
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const auto& known) { return known.second.index == index; });
  if (found == known_.end()) return;
  const auto& [first, known] = *found;
  for (uint32_t frame = 0; frame < frames_used_; ++frame) {
    const uint64_t page = page_of_[frame];
    if (page < first || page - first >= known.pages || known.frame[page - first] != frame + 1)
      continue;
    policy_->removed(FrameId{frame});
    add_free(frame);
  }
  known_.erase(found);
}

size_t PageLedger::choose_victims(std::span<FrameId> victims) {
  OC_CHECK(policy_ != nullptr);
  const size_t found = policy_->choose_victims(victims);
  OC_CHECK(found <= victims.size());
  return found;
}

void PageLedger::set_capacity(uint64_t bytes) {
  OC_CHECK(policy_ != nullptr);
  const uint64_t capacity = std::min(bytes / kPage, page_of_.count());
  if (capacity / 16 == capacity_ / 16) return;
  capacity_ = capacity;
  policy_->set_capacity(std::max<uint64_t>(capacity, 16));
}

void PageLedger::freed(FrameId victim) {
  const uint64_t page = page_of(victim);
  uint64_t first = 0;
  Known* const known = find_known(page, &first);
  OC_CHECK(known != nullptr);
  OC_CHECK(known->frame[page - first] == static_cast<uint32_t>(victim) + 1);
  known->frame[page - first] = 0;
  policy_->freed(victim);
  add_free(static_cast<uint32_t>(victim));
}

void PageLedger::add_free(uint32_t frame) {
  OC_CHECK(frame < frames_used_);
  page_of_[frame] = free_;
  free_ = frame;
}

void PageLedger::sort_by_page(std::span<FrameId> frames) const {
  std::sort(frames.begin(), frames.end(),
            [&](FrameId a, FrameId b) { return page_of(a) < page_of(b); });
}

}  // namespace outcore::buffer
