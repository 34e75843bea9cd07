#include "core/paging/cut_writer.h"

#include <algorithm>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/store/store_calls.h"

namespace outcore::paging {

using metrics::Counter;
using os::Piece;
using region::PageState;
using region::PageValue;
using region::View;

namespace {

constexpr uint64_t kRequestBytesMax = 1 << 20;
constexpr uint64_t kRunPagesMax = 64;  // who touches the last of them waits for all

// Clean, and being written back.
PageValue stored_word(PageValue v) {
  OC_CHECK(v.state() == PageState::kFrozen);
  return v.with(PageState::kResident).minus(PageValue::kDirty).plus(PageValue::kWriting);
}

}  // namespace

Status CutWriter::allocate_buffer() {
  if (buffer_.data() != nullptr || pages_.caches.empty()) return {};
  uint64_t least = 0;
  for (const PageCache* cache : pages_.caches) least = std::max(least, cache->page_bytes);
  const uint64_t left = (1 << 20) + pages_.listed_bytes() / 4 * 5;
  const uint64_t most = base::round_down(pager_.budget.limit() / 16, base::kSystemPage);
  const uint64_t bytes = std::max(std::min(base::round_up(left, base::kSystemPage), most), least);
  if (Status s = buffer_.allocate(bytes, least, "its buffer"); !s) return s;
  OC_CHECK(buffer_.size_bytes() >= least);
  OC_CHECK(buffer_.size_bytes() % base::kSystemPage == 0);
  return {};
}

Status CutWriter::store() {
  uint64_t done = 0;
  while (done < pages_.count && error_ == 0) {
    uint64_t end = done;
    while (end < pages_.count && error_ == 0) {
      const uint64_t run = copy_run(end);
      if (run == 0 && (error_ != 0 || !copy(end))) break;
      end += std::max<uint64_t>(run, 1);
    }
    OC_CHECK(end != done || error_ != 0);  // the buffer has room for a page
    write_out();
    for (; done < end; ++done) {
      PageCache& cache = pages_.cache_of(done);
      OC_ASSERT(pages_.word_of(done).peek().has(PageValue::kWriting));
      cache.counters.add(Counter::write_backs, 1);
      pages_.word_of(done).update([](PageValue v) { return v.minus(PageValue::kWriting); });
    }
  }
  undo(done, pages_.count);
  pages_.count = 0;
  if (error_ == 0) return {};
  return base::system_error(error_,
                            "store a cut: write " + std::to_string(failed_.size_bytes) +
                                " bytes at " + std::to_string(failed_.offset) + " of " +
                                pages_.caches[failed_index_]->uri,
                            "all bytes stay in memory, and the program goes on: make room or "
                            "repair the store, then try again");
}

os::SubpageSet CutWriter::written_of(uint64_t i) {
  PageCache& cache = pages_.cache_of(i);
  const uint64_t subpages = cache.page_bytes / base::kSystemPage;
  os::SubpageSet written;
  if (subpages == 1 || !cache.frames->reports_written()) {
    written.add_range(0, subpages);
  } else if (!cache.frames->has_write_faults()) {
    cache.look_at_written(pages_.page_of(pages_.key[i]), &written);
  } else {
    for (uint64_t k = 0; k < subpages; ++k)
      if ((pages_.written_bits[i * pages_.words_each + k / 64] >> (k % 64) & 1) != 0)
        written.add(k);
  }
  return written;
}

// Copies what was written of the page into the side buffer, and lets the program have it again.
// False: there is no room, or it cannot be read (error_).
bool CutWriter::copy(uint64_t i) {
  OC_CHECK(i < pages_.count);
  OC_CHECK(buffer_used_ <= buffer_.size_bytes());
  OC_CHECK(request_count_ <= kRequestsMax);
  OC_ASSERT(pages_.word_of(i).glance() == PageState::kFrozen);
  PageCache& cache = pages_.cache_of(i);
  const uint64_t start = pages_.page_of(pages_.key[i]) * cache.page_bytes;
  const uint64_t subpages = cache.page_bytes / base::kSystemPage;
  const uint64_t store_bytes = cache.store_bytes.load(std::memory_order_acquire);
  const os::SubpageSet written = written_of(i);
  uint64_t bytes = 0;
  uint32_t runs = 0;
  for (uint64_t first = 0, last = 0; written.next_run(last, subpages, &first, &last); ++runs)
    bytes += (last - first) * base::kSystemPage;
  const bool is_scattered = runs > kRequestsMax / 2;
  if (is_scattered) bytes = cache.page_bytes, runs = 1;
  if (buffer_used_ + bytes > buffer_.size_bytes() || request_count_ + runs > kRequestsMax)
    return false;
  for (uint64_t first = 0, last = 0; written.next_run(last, subpages, &first, &last);) {
    if (is_scattered) first = 0, last = subpages;
    const uint64_t from = start + first * base::kSystemPage;
    const uint64_t to = std::min(start + last * base::kSystemPage, store_bytes);
    if (from >= to) continue;
    const uint64_t copied = base::round_up(to - from, base::kSystemPage);
    Piece piece{nullptr, from, copied, true, 0};
    if (!cache.frames->can_share())
      cache.for_each_showing(pages_.page_of(pages_.key[i]),
                             [&](View& v) { piece.address = v.address + (from - v.offset); });
    if (!queue_piece(i, piece, to)) return false;
  }
  show(i, true);
  return true;
}

// The bytes of the piece, up to `to` in the store, into the side buffer and a request.
bool CutWriter::queue_piece(uint64_t i, const Piece& piece, uint64_t to) {
  PageCache& cache = pages_.cache_of(i);
  const uint64_t from = piece.offset;
  std::byte* const into = buffer_.data() + buffer_used_;
  OC_CHECK(from < to);
  OC_CHECK(to - from <= piece.size_bytes);
  OC_CHECK(piece.size_bytes <= buffer_.size_bytes() - buffer_used_);
  if (const int result = cache.frames->copy_out(piece, into); result != 0) {
    fail({from, nullptr, to - from, true, result}, cache);
    return false;
  }
  buffer_used_ += piece.size_bytes;
  StoreRequest* before = request_count_ == 0 ? nullptr : &request_[request_count_ - 1];
  if (before != nullptr && request_index_[request_count_ - 1] == pages_.index_of(pages_.key[i]) &&
      before->offset + before->size_bytes == from && before->bytes + before->size_bytes == into &&
      before->size_bytes < kRequestBytesMax) {
    before->size_bytes += to - from;
    return true;
  }
  OC_CHECK(request_count_ < kRequestsMax);
  request_[request_count_] = {from, into, to - from, true, 0};
  request_index_[request_count_++] = pages_.index_of(pages_.key[i]);
  return true;
}

// Neighbours of one system page each, with one question and one mapping for all. How many, or 0:
// they go one by one.
uint64_t CutWriter::copy_run(uint64_t i) {
  OC_CHECK(i < pages_.count);
  PageCache& cache = pages_.cache_of(i);
  if (cache.page_bytes != base::kSystemPage || request_count_ == kRequestsMax) return 0;
  const uint64_t first = pages_.page_of(pages_.key[i]);
  const uint64_t room = (buffer_.size_bytes() - buffer_used_) / base::kSystemPage;
  const uint64_t stored =
      cache.store_bytes.load(std::memory_order_acquire) / base::kSystemPage;  // whole ones
  uint64_t count = 1;
  while (count < std::min(room, kRunPagesMax) && i + count < pages_.count &&
         first + count < stored && pages_.key[i + count] == pages_.key[i] + count)
    ++count;
  if (count < 2 || room < 2 || first >= stored) return 0;
  Piece piece{nullptr, first * base::kSystemPage, count * base::kSystemPage, true, 0};
  if (!cache.frames->can_share()) {  // where a view shows all of them
    cache.for_each_run_showing(first, first + count, [&](const View&, const Piece& shown) {
      if (shown.size_bytes == piece.size_bytes) piece.address = shown.address;
    });
    if (piece.address == nullptr) return 0;
  }
  if (!queue_piece(i, piece, piece.offset + piece.size_bytes)) return 0;
  if (!cache.frames->has_write_faults())
    cache.for_each_run_showing(first, first + count, [&](const View&, const Piece& shown) {
      static_cast<void>(cache.frames->show(shown, {}));  // if not, the next touch but one does
    });
  for (uint64_t k = i; k < i + count; ++k) {
    cache.note_cleaning(first + (k - i));
    pages_.word_of(k).update(stored_word);
  }
  return count;
}

// Frozen → Resident: clean and being written back, or as it was.
void CutWriter::show(uint64_t i, bool is_stored) {
  OC_CHECK(i < pages_.count);
  OC_ASSERT(pages_.word_of(i).glance() == PageState::kFrozen);
  PageCache& cache = pages_.cache_of(i);
  const uint64_t page = pages_.page_of(pages_.key[i]);
  const bool has_faults = cache.frames->has_write_faults();
  os::SubpageSet written;
  if (!is_stored && !has_faults) cache.look_at_written(page, &written);
  if (!is_stored && has_faults)
    cache.restore_written(page, page * cache.page_bytes, (page + 1) * cache.page_bytes);
  cache.for_each_showing(page, [&](View& view) {
    // If the kernel refuses, the next touch but one tries again.
    if (!has_faults) static_cast<void>(cache.frames->show(view.piece_of(page), written));
  });
  if (is_stored) cache.note_cleaning(page);
  cache.words[page].update(
      [&](PageValue v) { return is_stored ? stored_word(v) : v.with(PageState::kResident); });
}

void CutWriter::undo(uint64_t first, uint64_t end) {
  OC_CHECK(first <= end);
  OC_CHECK(end <= pages_.count);
  for (uint64_t i = first; i < end; ++i) show(i, false);
}

void CutWriter::write_out() {
  for (uint32_t begin = 0; begin < request_count_;) {
    PageCache& cache = *pages_.caches[request_index_[begin]];
    uint32_t end = begin;
    while (end < request_count_ && request_index_[end] == request_index_[begin]) ++end;
    const uint32_t at_once = cache.write_gate.enter(end - begin);
    const std::span<StoreRequest> batch{request_ + begin, at_once};
    store::transfer(*cache.store.load(), batch);
    cache.write_gate.leave(at_once);
    for (const StoreRequest& request : batch) {
      cache.counters.add(Counter::write_requests, 1);
      cache.counters.add(Counter::written_bytes, request.size_bytes);
      cache.note_change(request.offset, request.size_bytes);
      report_.frozen_bytes += request.size_bytes;
      OC_ASSERT(request.result <= 0);
      if (request.result != 0) fail(request, cache);
    }
    begin += at_once;
  }
  request_count_ = 0;
  buffer_used_ = 0;
}

// What was not stored is written again; its pages carry our kWriting, or are frozen.
void CutWriter::fail(const StoreRequest& request, PageCache& cache) {
  OC_CHECK(request.result != 0);
  OC_CHECK(request.size_bytes != 0);
  cache.counters.add(Counter::write_back_errors, 1);
  cache.write_failures.note(request.offset, request.size_bytes);
  if (error_ == 0) {
    error_ = request.result;
    failed_ = request;
    failed_index_ = static_cast<uint32_t>(
        std::find(pages_.caches.begin(), pages_.caches.end(), &cache) - pages_.caches.begin());
  }
  if (request.bytes == nullptr) return;  // not even copied: it is shown again as it was
  const uint64_t end = request.offset + request.size_bytes;
  for (uint64_t page = request.offset / cache.page_bytes; page * cache.page_bytes < end; ++page) {
    cache.restore_written(page, request.offset, end);
    if (cache.frames->has_write_faults())
      cache.words[page].update([](PageValue v) { return v.plus(PageValue::kDirty); });
  }
}

}  // namespace outcore::paging
