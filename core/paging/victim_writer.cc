#include "core/paging/victim_writer.h"

#include <algorithm>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "core/store/store_calls.h"

namespace outcore::paging {

using metrics::Counter;
using os::Piece;
using region::PageState;
using region::PageValue;
using region::View;

void VictimWriter::queue_written(uint32_t i) {
  OC_CHECK(i < shard_.victim_count);
  const Victim& victim = shard_.victim[i];
  OC_CHECK(victim.is_dirty);
  OC_CHECK(!victim.is_out);
  const PageCache& cache = *victim.cache;
  OC_ASSERT(cache.words[victim.page].peek().has(PageValue::kWriting));
  const uint64_t start = victim.page * cache.page_bytes;
  const uint64_t store_bytes = cache.store_bytes.load(std::memory_order_acquire);
  const uint64_t end = cache.page_bytes / base::kSystemPage;
  const os::SubpageSet written =
      shard_.written;  // write_until() may run in between, and uses the scratch
  for (uint64_t first = 0, last = 0; written.next_run(last, end, &first, &last);) {
    const uint64_t from = start + first * base::kSystemPage;
    const uint64_t to = std::min(start + last * base::kSystemPage, store_bytes);
    if (from < to) queue_run(i, from, to - from);
  }
}

// The run gets its place in the write buffer, as a piece of the requests of a batch. It is copied
// there; but what frames hold that no view need show, when the request is complete (copy_shared).
void VictimWriter::queue_run(uint32_t i, uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(i < shard_.victim_count);
  PageCache& cache = *shard_.victim[i].cache;
  OC_ASSERT(offset % base::kSystemPage == 0);
  OC_ASSERT(offset / cache.page_bytes == shard_.victim[i].page);
  OC_ASSERT(offset + size_bytes <= cache.store_bytes.load());
  View* view = nullptr;
  if (!cache.frames->can_share())
    cache.for_each_showing(shard_.victim[i].page, [&](View& v) { view = &v; });
  while (size_bytes > 0) {
    OC_CHECK(shard_.request_count <= Shard::kRequestsMax);
    OC_CHECK(shard_.write_buffer_used <= shard_.write_buffer_bytes);
    const uint64_t room =
        base::round_down(shard_.write_buffer_bytes - shard_.write_buffer_used, base::kSystemPage);
    const bool is_joined = shard_.request_count > 0 && [&] {
      const StoreRequest& last = shard_.request[shard_.request_count - 1];
      return shard_.victim[shard_.request_last_victim[shard_.request_count - 1]].cache == &cache &&
             last.offset + last.size_bytes == offset;
    }();
    if (room == 0 || (!is_joined && shard_.request_count == Shard::kRequestsMax)) {
      write_until(i);
      continue;
    }
    const uint64_t bytes = std::min(size_bytes, room);
    std::byte* to = shard_.write_buffer + shard_.write_buffer_used;
    Piece piece{nullptr, offset, base::round_up(bytes, base::kSystemPage), true, 0};
    if (view != nullptr) piece.address = view->address + (offset - view->offset);
    OC_CHECK(piece.size_bytes <= shard_.write_buffer_bytes - shard_.write_buffer_used);
    const int result = cache.frames->can_share() ? 0 : cache.frames->copy_out(piece, to);
    if (result != 0) {  // nothing of it may reach the store
      fail_request({offset, nullptr, bytes, true, result}, i, i, cache);
      offset += bytes;
      size_bytes -= bytes;
      continue;
    }
    if (is_joined) {
      shard_.request[shard_.request_count - 1].size_bytes += bytes;
      shard_.request_last_victim[shard_.request_count - 1] = i;
    } else {
      shard_.request[shard_.request_count] = {offset, to, bytes, true, 0};
      shard_.request_first_victim[shard_.request_count] = i;
      shard_.request_last_victim[shard_.request_count] = i;
      ++shard_.request_count;
      OC_CHECK(shard_.request_count <= Shard::kRequestsMax);
    }
    shard_.write_buffer_used += base::round_up(bytes, base::kSystemPage);
    offset += bytes;
    size_bytes -= bytes;
  }
}

// What cannot be copied out may not reach the store; its neighbours may.
void VictimWriter::store_by_pages(const StoreRequest& request, uint32_t first_victim,
                                  uint32_t last_victim) {
  PageCache& cache = *shard_.victim[first_victim].cache;
  uint32_t i = first_victim;
  for (uint64_t done = 0; done < request.size_bytes;) {
    const uint64_t offset = request.offset + done;
    const uint64_t bytes = std::min<uint64_t>(base::kSystemPage, request.size_bytes - done);
    while (shard_.victim[i].page != offset / cache.page_bytes) ++i;
    OC_CHECK(i <= last_victim);
    StoreRequest page{offset, request.bytes + done, bytes, true, 0};
    page.result = cache.frames->copy_out({nullptr, offset, base::kSystemPage, true, 0}, page.bytes);
    if (page.result == 0) {
      cache.write_gate.enter();
      page.result = store::write(*cache.store.load(), offset, {page.bytes, bytes});
      cache.write_gate.leave();
      cache.counters.add(Counter::write_requests, 1);
      cache.counters.add(Counter::written_bytes, bytes);
      cache.note_change(offset, bytes);
    }
    if (page.result == 0)
      pager_.stall.end();
    else
      fail_request(page, i, i, cache);
    done += bytes;
  }
}

// Copies what the requests are to store, neighbours at once.
void VictimWriter::copy_shared() {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < shard_.request_count; ++i) {
    const StoreRequest request = shard_.request[i];
    const uint32_t first = shard_.request_first_victim[i], last = shard_.request_last_victim[i];
    PageCache& cache = *shard_.victim[first].cache;
    if (cache.frames->can_share()) {
      const Piece piece{nullptr, request.offset,
                        base::round_up(request.size_bytes, base::kSystemPage), true, 0};
      if (cache.frames->copy_out(piece, request.bytes) != 0) {
        store_by_pages(request, first, last);
        continue;
      }
    }
    shard_.request[kept] = request;
    shard_.request_first_victim[kept] = first;
    shard_.request_last_victim[kept++] = last;
  }
  shard_.request_count = kept;
}

void VictimWriter::write_until(uint32_t finish_end) {
  OC_CHECK(finish_end <= shard_.victim_count);
  OC_CHECK(finished_ <= finish_end);
  copy_shared();
  for (uint32_t begin = 0; begin < shard_.request_count;) {
    PageCache& cache = *shard_.victim[shard_.request_first_victim[begin]].cache;
    uint32_t end = begin;
    while (end < shard_.request_count &&
           shard_.victim[shard_.request_first_victim[end]].cache == &cache)
      ++end;
    const uint64_t start_ns = os::now_ns();
    const uint32_t at_once = cache.write_gate.enter(end - begin);
    end = begin + at_once;
    const std::span<StoreRequest> batch{shard_.request + begin, at_once};
    if (caller_ == Caller::kFault) {
      uint64_t pages = 0;
      for (StoreRequest& r : batch) {
        r.result = store::write(*cache.store.load(), r.offset, {r.bytes, r.size_bytes});
        if (r.result == 0) pages += std::max<uint64_t>(r.size_bytes / cache.page_bytes, 1);
      }
      const uint64_t now_ns = os::now_ns();
      if (pages != 0) pager_.write_cost.note(pages, now_ns - start_ns, now_ns);
    } else {
      store::transfer(*cache.store.load(), batch);
    }
    cache.write_gate.leave(at_once);
    for (uint32_t i = begin; i < end; ++i) {
      const StoreRequest& r = shard_.request[i];
      OC_ASSERT(r.result <= 0);
      OC_ASSERT(r.size_bytes != 0);
      cache.counters.add(Counter::write_requests, 1);
      cache.counters.add(Counter::written_bytes, r.size_bytes);
      cache.note_change(r.offset, r.size_bytes);
      if (r.result == 0)
        pager_.stall.end();
      else
        fail_request(r, shard_.request_first_victim[i], shard_.request_last_victim[i], cache);
    }
    begin = end;
  }
  shard_.request_count = 0;
  shard_.write_buffer_used = 0;
  for (; finished_ < finish_end; ++finished_) {
    Victim& victim = shard_.victim[finished_];
    if (victim.is_dirty && !victim.is_out) finish_write(victim);
  }
}

void VictimWriter::fail_request(const StoreRequest& request, uint32_t first_victim,
                                uint32_t last_victim, PageCache& cache) {
  OC_CHECK(request.result != 0);
  OC_CHECK(first_victim <= last_victim);
  OC_CHECK(last_victim < shard_.victim_count);
  cache.counters.add(Counter::write_back_errors, 1);
  cache.write_failures.note_unreported(
      {-request.result, request.offset, request.size_bytes, false});
  if (first_error_ == 0) first_error_ = request.result;
  for (uint32_t i = first_victim; i <= last_victim; ++i) {
    Victim& victim = shard_.victim[i];
    if (!victim.is_dirty) continue;
    OC_CHECK(victim.cache == &cache);
    victim.error = request.result;
    // These frames were protected to freeze them: what was to be written counts as written again.
    if (cache.frames->leaving_is_readable())
      cache.restore_written(victim.page, request.offset, request.offset + request.size_bytes);
  }
}

void VictimWriter::finish_write(Victim& victim) {
  OC_CHECK(victim.is_dirty);
  OC_CHECK(!victim.is_out);
  OC_ASSERT(word_of(victim).peek().has(PageValue::kWriting));
  PageCache& cache = *victim.cache;
  if (victim.error == 0) {
    word_of(victim).update([](PageValue v) {
      const PageValue idle = v.minus(PageValue::kWriting);
      return v.state() == PageState::kLeaving ? idle.plus(PageValue::kCleaned) : idle;
    });
    cache.counters.add(Counter::write_backs, 1);
    cache.publish(published::EventKind::kWriteBack, victim.page);
    OC_PROBE(write_back, cache.id, victim.page, cache.page_bytes);
    return;
  }
  // Dirty and in memory, and tried again when the policy gives it up again.
  victims_.put_back_leaving(victim, PageValue::kWriting,
                            cache.frames->has_write_faults() ? PageValue::kDirty : 0);
}

}  // namespace outcore::paging
