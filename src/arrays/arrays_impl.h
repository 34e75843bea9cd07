// ArraysImpl: a container that is open: its medium, its catalog, and who writes it with us.
#pragma once

#include <unistd.h>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "arrays/catalog.h"
#include "arrays/medium.h"
#include "outcore/arrays.h"
#include "outcore/runtime.h"

namespace outcore {

struct Arrays::Impl {
  using Entry = arrays::Entry;

  std::shared_ptr<arrays::Medium> medium;    // views share it
  std::unique_ptr<arrays::Catalog> catalog;  // guarded by mutex
  ArraysMode mode = ArraysMode::kRead;
  Communicator together;
  uint64_t session = 0;  // ours; 0: we read
  std::atomic<bool> is_open{false};
  std::atomic<bool> has_failed{false};   // something was not stored: what we write is not finished
  std::atomic<bool> is_in_place{false};  // finished arrays are changed where they are
  const pid_t process = ::getpid();
  const int exceptions = std::uncaught_exceptions();  // that were on their way when it was opened
  // Shared while bytes of an array travel; alone while arrays are finished, replaced or removed:
  // what travels is then of an array that stays. Taken before `mutex`.
  mutable std::shared_mutex traffic;
  mutable std::mutex mutex;  // of the catalog

  class CatalogLock;
  // session.cc
  Status begin();
  // What is ours is there for others, durably, at once with the rest of the change.
  // REQUIRES: a CatalogLock, and the traffic alone.
  Status finish(arrays::Change change);
  bool may_free() const;  // space of arrays that are gone is used again
  Status close();
  void abort();
  Status change_in_place();

  // arrays.cc
  Error no_such(const std::string& attempted, const std::string& name) const;
  Result<Entry> find(const std::string& attempted, const std::string& name) const;
  Status check_open(const std::string& attempted) const;
  Status check_writable(const std::string& attempted) const;
  // Its id, place and session; `remove` go with the same record. REQUIRES: a CatalogLock.
  Status make(const std::string& attempted, Entry* entry, uint64_t bytes,
              const std::vector<uint64_t>& remove);
  Status noted(Status s);  // what was not stored keeps the session from being finished
  // REQUIRES: the traffic, shared or alone.
  Status write_box(const std::string& attempted, const Entry& entry, const void* data,
                   const Dims& offsets, const Dims& dims);
  Status write_value(const std::string& attempted, const Entry& entry, const std::byte* from,
                     const arrays::Runs& runs);
  Status read_box(const Entry& entry, void* into, const Dims& offsets, const Dims& dims) const;

 private:
  Status begin_to_write();
  Status join();
  Status end(Status first);
  Status leave(const Status& first);
  Status wait_for_all();
};

// Others of the session may have changed the catalog; whoever holds this has it as it is.
class Arrays::Impl::CatalogLock {
 public:
  explicit CatalogLock(Impl& impl);
  ~CatalogLock();
  CatalogLock(const CatalogLock&) = delete;
  CatalogLock& operator=(const CatalogLock&) = delete;
  const Status& status() const { return status_; }

 private:
  Impl& impl_;
  std::lock_guard<std::mutex> guard_;
  bool is_locked_ = false;
  Status status_;
};

namespace arrays {
ArrayInfo info_of(const Entry& entry);
// EINVAL: it is empty, too long, or has control characters.
Status check_name(const std::string& attempted, const std::string& name);
// As the medium has them: last dimension fastest.
Dims in_rows(const Entry& entry, const Dims& dims);
}  // namespace arrays

}  // namespace outcore
