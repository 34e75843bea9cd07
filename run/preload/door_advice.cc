// What a program asks for its mappings, and about them: msync, madvise, mincore. See door.h.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/runtime/learnt_starts.h"
#include "core/runtime/region_changes.h"
#include "core/runtime/sharing.h"
#include "run/preload/door.h"
#include "run/preload/heap.h"
#include "run/preload/page_advice.h"
#include "run/preload/real.h"
#include "run/preload/words.h"

namespace outcore::preload {

using base::kSystemPage;
using paging::PageCache;
using region::View;

namespace {

// Pages of the cache that [from, to) of a mapping shows; false if it shows none of it.
bool pages_of(const Mapping& m, uint64_t from, uint64_t to, uint64_t* first, uint64_t* end) {
  const View& view = *m.region->view;
  to = std::min<uint64_t>(to, view.mapped_bytes());
  if (from >= to) return false;
  *first = (view.offset + from) / view.page_bytes;
  *end = (view.offset + to - 1) / view.page_bytes + 1;
  OC_ASSERT(*first < *end);
  return true;
}

bool is_locked(const Mapping& m, uint64_t from, uint64_t to) {
  return std::any_of(m.locks.begin(), m.locks.end(),
                     [&](const Mapping::Lock& l) { return l.from < to && l.to > from; });
}

}  // namespace

int Door::sync(std::byte* address, uint64_t size_bytes, int flags) {
  int result = 0;
  std::vector<std::shared_ptr<Store>> stores;  // synced after the door is unlocked again
  for_each_part(address, size_bytes, [&](Mapping& m, uint64_t from, uint64_t to) {
    if ((flags & MS_INVALIDATE) != 0 && is_locked(m, from, to)) result = EBUSY;
    if ((flags & MS_SYNC) == 0) return;
    uint64_t first = 0, end = 0;
    if (result != 0 || m.region->access != Access::kReadWrite ||
        !pages_of(m, from, to, &first, &end))
      return;
    PageCache& cache = *m.region->cache;
    if (const Status s = runtime_->engine->flush(cache, first, end); !s.ok()) {
      say("msync: " + s.message(), true);
      result = as_errno(s);
      return;
    }
    for (const std::shared_ptr<Store>& store : cache.owned)
      if (store.get() == cache.store.load() &&
          std::find(stores.begin(), stores.end(), store) == stores.end())
        stores.push_back(store);
  });
  const Inside inside;
  for (const std::shared_ptr<Store>& store : stores)
    if (result == 0) result = -store->sync();
  return result;
}

int Door::on_the_rest(const std::byte* address, uint64_t size_bytes,
                      const std::function<int(const std::byte*, uint64_t)>& f) {
  const std::byte* at = address;
  int result = 0;
  std::vector<std::pair<const std::byte*, const std::byte*>> ours;
  for_each_part(address, size_bytes, [&](Mapping& m, uint64_t from, uint64_t to) {
    to = std::min<uint64_t>(to, m.region->view->mapped_bytes());
    if (from < to) ours.emplace_back(m.address + from, m.address + to);
  });
  for (const auto& [from, to] : ours) {
    if (from > at && result == 0) result = f(at, static_cast<uint64_t>(from - at));
    at = to;
  }
  const std::byte* end = address + size_bytes;
  if (end > at && result == 0) result = f(at, static_cast<uint64_t>(end - at));
  return result;
}

// As madvise on bytes [from, to) of one mapping; 0 or an errno.
int Door::advise_part(Mapping& m, uint64_t from, uint64_t to, int advice) {
  if (advice == MADV_NORMAL || advice == MADV_RANDOM || advice == MADV_SEQUENTIAL) {
    m.pattern = advice;
    m.region->view->advice = advice_of(advice);
    return 0;
  }
  uint64_t first = 0, end = 0;
  if (!pages_of(m, from, to, &first, &end)) return 0;
  const bool is_leaving = advice == MADV_DONTNEED || advice == MADV_PAGEOUT ||
                          advice == MADV_COLD || advice == MADV_REMOVE;
  if (is_leaving && is_locked(m, from, to)) return EINVAL;
  View& view = *m.region->view;
  switch (advice) {
    case MADV_POPULATE_READ:
    case MADV_POPULATE_WRITE:
      if ((m.protection & (advice == MADV_POPULATE_READ ? PROT_READ : PROT_WRITE)) == 0)
        return EINVAL;
      return fill_pages(*runtime_->engine, view, first, end);
    case MADV_DONTNEED:  // the bytes of a file are kept
      return advise_pages(*runtime_->engine, view, first, end, MADV_PAGEOUT);
    case MADV_REMOVE:
      return m.may_write ? punch(m, m.offset + from, to - from) : EACCES;
    default:
      return advise_pages(*runtime_->engine, view, first, end, advice);
  }
}

int Door::punch(Mapping& m, uint64_t offset, uint64_t size_bytes) {
  OC_ASSERT(size_bytes != 0);
  int result = 0;
  const Status s = runtime_->changes->with_blocked_range(*m.region->cache, offset, size_bytes, [&] {
    const uint64_t file_bytes = m.file->store->size_bytes();
    if (offset < file_bytes)
      result = -m.file->store->discard(offset, std::min(size_bytes, file_bytes - offset));
  });
  return s.ok() ? result : s.code();
}

int Door::advise(std::byte* address, uint64_t size_bytes, int advice) {
  int result = 0;
  bool is_some_together = false;  // others have it in memory, where it would stay
  if (advice == MADV_REMOVE)
    for_each_part(address, size_bytes, [&](Mapping& m, uint64_t, uint64_t) {
      is_some_together = is_some_together || m.file->is_together();
    });
  if (is_some_together)
    result = leave(address, size_bytes, "the program removes a part of it (madvise)");
  for_each_part(address, size_bytes, [&](Mapping& m, uint64_t from, uint64_t to) {
    if (result == 0) result = advise_part(m, from, to, advice);
  });
  if (result != 0) return result;
  return on_the_rest(address, size_bytes, [&](const std::byte* a, uint64_t n) {
    return real().madvise(const_cast<std::byte*>(a), n, advice) == 0 ? 0 : errno;
  });
}

int Door::leave(const std::byte* address, uint64_t size_bytes, const char* why) {
  const Inside inside;
  const os::Locked locked(lock_);
  const std::byte* end = address + size_bytes;
  for (Mapping* m = mapping_at(address); m != nullptr && m->address < end; m = mapping_at(address))
    if (!hand_back_locked(*m->file, why)) return EIO;
  return 0;
}

void Door::look_up_residency(const std::byte* address, uint64_t size_bytes, unsigned char* states) {
  for_each_part(address, size_bytes, [&](Mapping& m, uint64_t from, uint64_t to) {
    const View& view = *m.region->view;
    to = std::min<uint64_t>(to, view.mapped_bytes());
    for (uint64_t at = from; at < to; at += kSystemPage) {
      if (m.region->cache->shared != nullptr) {
        const bool is_absent = m.region->cache->seems_absent((view.offset + at) / view.page_bytes);
        states[static_cast<uint64_t>(m.address + at - address) / kSystemPage] = is_absent ? 0 : 1;
        continue;
      }
      const auto state =
          m.region->cache->words[(view.offset + at) / view.page_bytes].load().state();
      // A page that is being filled counts: a thread that waited for it may have gone on already.
      const bool is_there =
          state != region::PageState::kAbsent && state != region::PageState::kFailed;
      states[static_cast<uint64_t>(m.address + at - address) / kSystemPage] = is_there ? 1 : 0;
    }
  });
}

void Door::undo_locks() {
  const Inside inside;
  const os::Locked locked(lock_);
  for (const auto& [address, m] : mappings_) {
    const View& view = *m->region->view;
    m->region->cache->frames->unlock({view.address, view.offset, view.mapped_bytes(), false, 0});
  }
}

void Door::with_cache(TakenFile& file, const std::function<void(PageCache&, uint64_t)>& f) {
  const Inside inside;
  const os::Locked locked(lock_);
  if (file.mappings.empty()) return;
  OC_ASSERT(file.cache() != nullptr);
  uint64_t mapped = 0;
  for (const auto& [address, m] : file.mappings) mapped += m->size_bytes;
  f(*file.cache(), mapped);
}

Status Door::bring(TakenFile& file, uint64_t offset, uint64_t size_bytes, bool is_in) {
  const Inside inside;
  const os::Locked locked(lock_);
  if (size_bytes == 0) size_bytes = UINT64_MAX - offset;
  for (const auto& [address, m] : file.mappings) {
    const uint64_t end = m->offset + m->size_bytes;
    const uint64_t stop = size_bytes > end || offset > end - size_bytes ? end : offset + size_bytes;
    uint64_t first = 0, last = 0;
    if (offset >= end || stop <= m->offset ||
        !pages_of(*m, std::max(offset, m->offset) - m->offset, stop - m->offset, &first, &last))
      continue;
    if (!is_in) {
      if (Status s = runtime_->engine->evict(*m->region->cache, first, last); !s) return s;
      continue;
    }
    if (const int error = fill_pages(*runtime_->engine, *m->region->view, first, last); error != 0)
      return Error{error, "a page could not be read"};
  }
  return {};
}

Report Door::report() {
  const Inside inside;
  const os::Locked locked(lock_);
  Report r;
  r.program = program_name();
  r.pid = ::getpid();
  r.not_taken = not_taken_.entries();
  if (runtime_ == nullptr) return r;
  Metrics metrics;
  runtime_->engine->add_to(metrics);
  r.budget_bytes = metrics.gauges.budget_bytes;
  r.peak_bytes = metrics.gauges.used_bytes_max;
  if (runtime_->sharing->buffer() != nullptr) {
    r.budget_bytes = runtime_->sharing->buffer()->room().limit_bytes();
    const uint64_t shared = runtime_->sharing->buffer()->member().board().used_bytes_max.load();
    r.peak_bytes =
        runtime_->sharing->has_own_budget_beside() ? std::max(shared, r.peak_bytes) : shared;
  }
  r.page_bytes = runtime_->options.page_bytes;
  r.delivery = delivery_;
  if (runtime_->learnt->learns_by_option()) {
    const auto replayed = runtime_->engine->replayed();
    r.learn = {runtime_->options.learn_file, replayed.bytes, replayed.runs,
               runtime_->learnt->replayed_files(), kept_ == Kept::kAll};
  }
  for (const auto& [identity, file] : files_) {
    if (file->file_bytes == 0 || file->owner != ::getpid()) continue;
    FileReport f;
    f.path = file->path;
    f.remark = file->remark;
    f.file_bytes = file->file_bytes;
    f.is_taken = !file->mappings.empty() && file->idle_since_ns == 0;
    f.counters = file->ended;
    for (const auto& [address, m] : file->mappings)
      f.mapped_bytes += m->is_face ? 0 : m->size_bytes;
    if (const PageCache* cache = file->cache()) {
      f.counters += cache->counters.sum();
    }
    r.files.push_back(f);
  }
  Heap::instance().add_to(r);
  return r;
}

}  // namespace outcore::preload
