// FlushBuffer: writes the written parts of pages to their store, through one buffer, one transfer
// at a time.
//
// It gathers the parts in a bounce buffer and writes them, neighbours joined. It has the buffer
// only from the first page to finish(), because a fill may wait for one. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/budget/bounce_pool.h"
#include "core/paging/page_cache.h"
#include "core/paging/write_stall.h"
#include "core/store/store_calls.h"

namespace outcore::paging {

class FlushBuffer {
 public:
  FlushBuffer(PageCache& cache, budget::BouncePool& bounce, WriteStall& stall)
      : cache_(cache), bounce_(bounce), stall_(stall) {}

  // Enters the cache's epoch: no cut ends it until finish().
  void begin() {
    if (!is_inside_) cache_.epoch.enter();
    is_inside_ = true;
  }

  // Adds the written parts of a page. REQUIRES: begin(); the page carries kWriting, which belongs
  // to this object until its bytes are stored or have failed.
  void add(uint64_t page, const os::SubpageSet& written) {
    OC_CHECK(is_inside_);
    OC_ASSERT(cache_.words[page].peek().has(region::PageValue::kWriting));
    if (buffer_.empty()) buffer_ = bounce_.acquire(bounce_.shape().chunk_bytes);
    if (held_count_ == kHeldMax) write_all();
    OC_CHECK(held_count_ < kHeldMax);
    held_[held_count_++] = page;
    const uint64_t start = page * cache_.page_bytes;
    const uint64_t store_bytes = cache_.store_bytes.load(std::memory_order_acquire);
    const uint64_t end = cache_.page_bytes / base::kSystemPage;
    for (uint64_t first = 0, last = 0; written.next_run(last, end, &first, &last);) {
      const uint64_t to = std::min(start + last * base::kSystemPage, store_bytes);
      for (uint64_t from = start + first * base::kSystemPage; from < to;)
        from += add_run(from, to - from);
    }
  }

  // Stores everything that was added, or notes the first error.
  void finish() {
    write_all();
    for (uint32_t i = 0; i < held_count_; ++i) finish_write(held_[i]);
    held_count_ = 0;
    if (!buffer_.empty()) bounce_.release(buffer_);
    buffer_ = {};
    if (is_inside_) cache_.epoch.leave();
    is_inside_ = false;
  }
  // Notes a request that failed before it reached the store.
  void note(const StoreRequest& request) {
    OC_CHECK(request.result != 0);
    cache_.counters.add(metrics::Counter::write_back_errors, 1);
    cache_.write_failures.note(request.offset, request.size_bytes);
    if (error_ == 0) error_ = request.result, failed_ = request;
  }
  int error() const { return error_; }
  uint64_t stored_bytes() const { return stored_bytes_; }
  const StoreRequest& failed() const { return failed_; }

 private:
  static constexpr uint32_t kHeldMax = 256, kRequestsMax = 64;

  uint64_t add_run(uint64_t offset, uint64_t size_bytes) {
    OC_CHECK(used_ <= buffer_.size());
    if (used_ == buffer_.size()) write_all();
    const uint64_t bytes = std::min<uint64_t>(size_bytes, buffer_.size() - used_);
    OC_CHECK(bytes != 0);
    StoreRequest* last = request_count_ == 0 ? nullptr : &request_[request_count_ - 1];
    const bool is_joined = last != nullptr && last->offset + last->size_bytes == offset;
    if (!is_joined && request_count_ == kRequestsMax) {
      write_all();
      return 0;
    }
    os::Piece piece{nullptr, offset, base::round_up(bytes, base::kSystemPage), true, 0};
    if (!cache_.frames->can_share())
      cache_.for_each_showing(offset / cache_.page_bytes, [&](region::View& v) {
        piece.address = v.address + (offset - v.offset);
      });
    OC_CHECK(piece.size_bytes <= buffer_.size() - used_);
    OC_ASSERT(offset % base::kSystemPage == 0);
    OC_ASSERT(offset + bytes <= cache_.store_bytes.load());
    // What frames hold that no view need show is copied when the request is complete (copy_shared).
    const int result =
        cache_.frames->can_share() ? 0 : cache_.frames->copy_out(piece, buffer_.data() + used_);
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

  // Copies what the requests are to store, neighbours at once.
  void copy_shared() {
    if (!cache_.frames->can_share()) return;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < request_count_; ++i) {
      const StoreRequest request = request_[i];
      const os::Piece piece{nullptr, request.offset,
                            base::round_up(request.size_bytes, base::kSystemPage), true, 0};
      if (cache_.frames->copy_out(piece, request.bytes) == 0)
        request_[kept++] = request;
      else
        store_by_pages(request);
    }
    request_count_ = kept;
  }

  // Pages that cannot be copied out must not reach the store; their neighbours may.
  void store_by_pages(const StoreRequest& request) {
    for (uint64_t done = 0; done < request.size_bytes; done += base::kSystemPage) {
      const uint64_t offset = request.offset + done;
      StoreRequest page{offset, request.bytes + done,
                        std::min<uint64_t>(base::kSystemPage, request.size_bytes - done), true, 0};
      page.result =
          cache_.frames->copy_out({nullptr, offset, base::kSystemPage, true, 0}, page.bytes);
      if (page.result != 0) {
        fail(page);
        continue;
      }
      cache_.write_gate.enter();
      page.result = store::write(*cache_.store.load(), offset, {page.bytes, page.size_bytes});
      cache_.write_gate.leave();
      account(page);
    }
  }

  void write_all() {
    copy_shared();
    for (uint32_t begin = 0; begin < request_count_;) {
      const uint32_t at_once = cache_.write_gate.enter(request_count_ - begin);
      const std::span<StoreRequest> batch{request_ + begin, at_once};
      store::transfer(*cache_.store.load(), batch);
      cache_.write_gate.leave(at_once);
      for (const StoreRequest& request : batch) account(request);
      begin += at_once;
    }
    request_count_ = 0;
    used_ = 0;
    // The last page may have more to write.
    for (uint32_t i = 0; i + 1 < held_count_; ++i) finish_write(held_[i]);
    if (held_count_ > 1) held_[0] = held_[held_count_ - 1], held_count_ = 1;
  }

  void account(const StoreRequest& request) {
    cache_.counters.add(metrics::Counter::write_requests, 1);
    cache_.counters.add(metrics::Counter::written_bytes, request.size_bytes);
    cache_.note_change(request.offset, request.size_bytes);
    OC_ASSERT(request.result <= 0);
    if (request.result != 0) fail(request);
    if (request.result != 0) return;
    stored_bytes_ += request.size_bytes;
    stall_.end();
  }

  void fail(const StoreRequest& request) {
    note(request);
    // Not stored: it counts as written again.
    const uint64_t end = request.offset + request.size_bytes;
    for (uint64_t page = request.offset / cache_.page_bytes; page * cache_.page_bytes < end;
         ++page) {
      cache_.restore_written(page, request.offset, end);
      if (cache_.frames->has_write_faults())
        cache_.words[page].update(
            [](region::PageValue v) { return v.plus(region::PageValue::kDirty); });
    }
  }

  void finish_write(uint64_t page) {
    OC_ASSERT(cache_.words[page].peek().has(region::PageValue::kWriting));
    cache_.counters.add(metrics::Counter::write_backs, 1);
    cache_.words[page].update(
        [](region::PageValue v) { return v.minus(region::PageValue::kWriting); });
  }

  PageCache& cache_;
  budget::BouncePool& bounce_;
  WriteStall& stall_;
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

}  // namespace outcore::paging
