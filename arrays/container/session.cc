// Processes that write a container together: how they join a session, and how what they have
// written is finished.
//
// Each member holds Lease::kWriter until it has closed, or until it dies. So a member that closes
// and finds no other holder knows whether all have closed, or some have died.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "arrays/container/arrays_impl.h"
#include "core/base/assert.h"

namespace outcore {

using arrays::Change;
using arrays::Lease;
using arrays::Session;

namespace {

constexpr auto kGatherMax = std::chrono::seconds(60);

}  // namespace

Arrays::Impl::CatalogLock::CatalogLock(Impl& impl) : impl_(impl), guard_(impl.mutex) {
  if (impl_.session == 0) return;  // for a reader it does not change
  status_ = impl_.storage->lock(Lease::kCatalog, true, true);
  is_locked_ = status_.ok();
  if (status_.ok() && impl_.together.size > 1) status_ = impl_.catalog->refresh();
}

Arrays::Impl::CatalogLock::~CatalogLock() {
  if (is_locked_) impl_.storage->unlock(Lease::kCatalog);
}

Status Arrays::Impl::begin() {
  OC_CHECK(catalog != nullptr && !is_open);
  if (Status s = storage->lock(Lease::kCatalog, mode != ArraysMode::kRead, true); !s) return s;
  Status s;
  if (mode != ArraysMode::kRead) {
    s = begin_to_write();
  } else {
    s = storage->lock(Lease::kReader, false, true);
    if (s.ok()) s = catalog->look();
    if (s.ok()) s = catalog->load();
    if (s.ok() && catalog->session().is_in_place) {
      const auto is_written = storage->is_locked_by_others(Lease::kWriter);
      if (!is_written) s = is_written.status();
      if (s.ok() && is_written.value())
        s = Error{EBUSY, "open " + storage->uri() +
                             ": another process changes arrays of it in place: wait until it has "
                             "closed it"};
    }
  }
  storage->unlock(Lease::kCatalog);
  // With any() they wait for each other there.
  if (s.ok() && session != 0 && together.size > 1 && !together.any) s = wait_for_all();
  is_open = s.ok();
  return s;
}

// REQUIRES: Lease::kCatalog.
Status Arrays::Impl::begin_to_write() {
  OC_CHECK(session == 0 && mode != ArraysMode::kRead);
  if (together.size > 1 && !storage->can_be_shared())
    return Error{ENOTSUP, "open " + storage->uri() + ": its store has one writer, not " +
                              std::to_string(together.size) +
                              ": let one process write, or take a file or a store of redis://"};
  const auto is_written = storage->is_locked_by_others(Lease::kWriter);
  if (!is_written) return is_written.status();
  if (is_written.value()) return join();
  const Status there = catalog->look();
  if (!there.ok() && there.code() != ENOENT) return there;
  const bool is_new = there.code() == ENOENT;
  if (!is_new && mode == ArraysMode::kWrite) {
    const auto is_read = storage->is_locked_by_others(Lease::kReader);
    if (!is_read) return is_read.status();
    if (is_read.value())
      return Error{EBUSY, "open " + storage->uri() +
                              ": another process reads it: write another container, or wait"};
  }
  const bool is_made_anew = is_new || mode == ArraysMode::kWrite;
  Change change;
  if (!is_made_anew) {
    if (Status s = catalog->load(); !s) return s;
    if (Status s = catalog->clean(); !s) return s;
    for (const auto& [id, entry] : catalog->entries()) {  // left by writers that died
      if (entry.session != 0) change.remove.push_back(id);
      if (entry.session != 0 || !entry.are_sums_open) continue;
      change.put.push_back(entry);  // it was being changed in place: its checksums are not valid
      change.put.back().are_sums_open = false;
      change.put.back().block_bytes = 0;
    }
  }
  session = is_made_anew ? 1 : catalog->session().number + 1;
  change.has_session = true;
  change.session = {session, together.size, 1, 0, false, false};
  if (Status s = is_made_anew ? catalog->create(change) : catalog->append(change, false); !s)
    return s;
  return storage->lock(Lease::kWriter, false, true);
}

Status Arrays::Impl::join() {
  if (Status s = catalog->load(); !s) return s;
  Change change;
  change.has_session = true;
  Session& joined = change.session = catalog->session();
  if (together.size == 1 || joined.size != together.size || joined.joined == joined.size)
    return Error{EBUSY, "open " + storage->uri() +
                            ": another process writes it: wait until it has closed it" +
                            storage->patience()};
  OC_ASSERT(joined.joined < joined.size && session == 0);
  ++joined.joined;
  session = joined.number;
  if (Status s = catalog->append(change, false); !s) return s;
  return storage->lock(Lease::kWriter, false, true);
}

// Nobody closes before all have joined; otherwise a late process would begin a new session.
Status Arrays::Impl::wait_for_all() {
  OC_ASSERT(session != 0 && together.size > 1);
  const auto until = std::chrono::steady_clock::now() + kGatherMax;
  auto pause = std::chrono::microseconds(100);
  for (;;) {
    Session seen;
    {
      const CatalogLock lock(*this);
      if (!lock.status().ok()) return lock.status();
      seen = catalog->session();
    }
    if (seen.number != session || seen.joined == seen.size) return {};
    if (std::chrono::steady_clock::now() > until)
      return Error{ETIMEDOUT, "open " + storage->uri() + ": of " + std::to_string(seen.size) +
                                  " processes only " + std::to_string(seen.joined) +
                                  " have opened it within a minute"};
    std::this_thread::sleep_for(pause);
    pause = std::min<std::chrono::microseconds>(pause * 2, std::chrono::milliseconds(20));
  }
}

// From now on nobody else may read, because what they see would change.
Status Arrays::Impl::change_in_place(uint64_t id) {
  OC_CHECK(session != 0);
  if (is_in_place) {
    const std::lock_guard<std::mutex> guard(mutex);
    if (restamped.contains(id)) return {};
  }
  const CatalogLock lock(*this);
  if (!lock.status().ok()) return lock.status();
  if (!is_in_place && storage->knows_readers()) {
    const auto is_read = storage->is_locked_by_others(Lease::kReader);
    if (!is_read) return is_read.status();
    if (is_read.value())
      return Error{EBUSY, "change an array of " + storage->uri() +
                              " in place: another process or view reads it: wait, or store the "
                              "array as a whole"};
  }
  Change change;
  change.has_session = true;
  change.session = catalog->session();
  change.session.is_in_place = true;
  bool has_sums = false;
  const auto entry = catalog->entries().find(id);  // it is no longer the same as its copies
  if (entry != catalog->entries().end()) {
    has_sums = entry->second.block_bytes != 0;
    change.put.push_back(entry->second);
    change.put.back().stamp = arrays::new_stamp();
    change.put.back().are_sums_open = has_sums;
  }
  // Durable before the first byte of it changes; otherwise a loss of power would leave checksums of
  // the old content.
  if (Status s = catalog->append(change, has_sums); !s) return s;
  restamped.insert(id);
  is_in_place = true;
  return {};
}

// Arrays that we have written replace those of the same name.
Status Arrays::Impl::finish(Change change) {
  OC_CHECK(session != 0);
  std::vector<std::pair<uint64_t, uint64_t>> freed;
  for (const auto& [id, entry] : catalog->entries()) {
    if (entry.session != session) continue;
    change.put.push_back(entry);
    if (Status s = close_sums(&change.put.back()); !s) return s;
    change.put.back().session = 0;
    for (const auto& [other_id, other] : catalog->entries())
      if (other.session == 0 && other.name == entry.name) {
        change.remove.push_back(other_id);
        if (!other.is_inline()) freed.emplace_back(other.offset, other.size_bytes);
      }
  }
  if (change.is_empty()) return storage->sync();
  if (Status s = catalog->append(change, true); !s) return s;
  if (may_free())  // otherwise the next opener frees it
    for (const auto& [offset, size_bytes] : freed)
      static_cast<void>(storage->release(offset, size_bytes));
  return {};
}

Status Arrays::Impl::close() {
  if (!is_open || process != ::getpid()) return {};  // in a forked child, the parent closes it
  const std::unique_lock<std::shared_mutex> alone(traffic);
  is_open = false;
  {
    const std::lock_guard<std::mutex> guard(beyond_mutex);
    beyond.clear();
  }
  if (session == 0) {
    if (storage.use_count() == 1) storage->unlock(Lease::kReader);  // no view uses it
    return {};
  }
  Status first = hand_over_sums();
  if (Status s = storage->sync(); first.ok()) first = s;
  if (has_failed && first.ok())
    first = Error{EIO, "close " + storage->uri() +
                           ": something was not stored, as was said: what was being written is "
                           "absent"};
  if (first.ok() && together.size > 1) first = storage->hear_of_others();
  return end(first);
}

void Arrays::Impl::abort() {
  if (!is_open || process != ::getpid()) return;
  if (session == 0) return static_cast<void>(close());
  const std::unique_lock<std::shared_mutex> alone(traffic);
  is_open = false;
  static_cast<void>(end(Error{ECANCELED, "abort " + storage->uri()}));
}

// REQUIRES: `traffic` is locked exclusively; is_open is false.
Status Arrays::Impl::end(Status first) {
  OC_ASSERT(!is_open && session != 0);
  if (Status s = leave(first); !s && first.ok()) first = s;
  storage->unlock(Lease::kWriter);
  {
    const std::lock_guard<std::mutex> guard(mutex);
    storage->leave();
  }
  if (together.any && together.any(!first.ok()) && first.ok())
    first = Error{EIO, "close " + storage->uri() +
                           ": another process could not store: what was being written is absent"};
  return first;
}

// Appends one record: this process has closed, and if it is the last, which arrays are finished and
// which are removed.
Status Arrays::Impl::leave(const Status& first) {
  const CatalogLock lock(*this);
  if (!lock.status().ok()) return lock.status();
  Change change;
  change.has_session = true;
  Session& now = change.session = catalog->session();
  ++now.closed;
  now.has_failed = now.has_failed || !first.ok();
  const auto are_others = storage->is_locked_by_others(Lease::kWriter);
  if (!are_others) return are_others.status();
  const bool is_last = !are_others.value();
  const bool have_all = now.closed == now.size;
  if (is_last) now.is_in_place = false;
  Status s;
  if (is_last && have_all && !now.has_failed) {
    for (const auto& [id, entry] : catalog->entries()) {
      if (entry.session != 0 || !entry.are_sums_open || !s.ok()) continue;
      if (catalog->find(entry.name, session) != &entry) continue;  // it is being replaced
      change.put.push_back(entry);
      s = close_sums(&change.put.back());
    }
    if (s.ok()) s = finish(change);
  } else {
    std::vector<std::pair<uint64_t, uint64_t>> freed;
    if (is_last)
      for (const auto& [id, entry] : catalog->entries()) {
        if (entry.session != session) continue;
        change.remove.push_back(id);
        if (!entry.is_inline()) freed.emplace_back(entry.offset, entry.size_bytes);
      }
    s = catalog->append(change, is_last);
    // Readers never saw these arrays, but a view of ours may show them.
    const auto is_read = storage->is_locked_by_others(Lease::kReader);
    if (s.ok() && storage->knows_readers() && is_read.ok() && !is_read.value())
      for (const auto& [offset, size_bytes] : freed)
        static_cast<void>(storage->release(offset, size_bytes));
  }
  // Before others can look at the catalog: they must see that we have gone.
  storage->unlock(Lease::kWriter);
  if (!s.ok() || !first.ok()) return s;
  if (is_last && !have_all)
    return Error{EIO, "close " + storage->uri() + ": " + std::to_string(now.size - now.closed) +
                          " of " + std::to_string(now.size) +
                          " processes ended without closing it: what was being written is absent"};
  if (now.has_failed)
    return Error{EIO, "close " + storage->uri() +
                          ": another process could not store: what was being written is absent"};
  return {};
}

}  // namespace outcore
