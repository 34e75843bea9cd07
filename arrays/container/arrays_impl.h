// ArraysImpl: a container that is open: its storage, its catalog, and who writes it with us.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>

#include "arrays/container/block_sums.h"
#include "arrays/container/catalog.h"
#include "arrays/container/container_storage.h"
#include "arrays/container/packed_tiles.h"
#include "outcore/arrays.h"
#include "outcore/runtime.h"

namespace outcore {

inline Error wrong(const std::string& attempted, const std::string& why, int code = EINVAL) {
  return {code, attempted + ": " + why};
}

struct Arrays::Impl {
  using Entry = arrays::Entry;

  std::shared_ptr<arrays::ContainerStorage> storage;  // views share it
  std::unique_ptr<arrays::Catalog> catalog;           // guarded by mutex
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
  mutable std::mutex mutex;                  // of the catalog
  mutable arrays::TileMutexes tile_mutexes;  // of compressed tiles
  mutable std::mutex packers_mutex;
  mutable std::map<std::pair<std::string, uint64_t>, std::shared_ptr<const packing::Packer>>
      packers;  // by what they pack with and the bytes of a tile

  Runtime* runtime = nullptr;  // that was lent
  mutable std::mutex beyond_mutex;
  mutable std::map<std::string, std::shared_ptr<const Arrays>> beyond;  // by their URIs
  std::set<uint64_t> restamped;  // finished arrays that we change in place; guarded by mutex
  std::mutex sums_mutex;
  std::map<uint64_t, arrays::BlockSums> sums;  // of what we wrote, by id; guarded by sums_mutex
  bool has_checksums = true;                   // new arrays get some

  class CatalogLock;
  // session.cc
  Status begin();
  // What is ours is there for others, durably, at once with the rest of the change.
  // REQUIRES: a CatalogLock, and the traffic alone.
  Status finish(arrays::Change change);
  bool may_free() const;  // space of arrays that are gone is used again
  Status close();
  void abort();
  Status change_in_place(uint64_t id);

  // arrays.cc
  Error no_such(const std::string& attempted, const std::string& name) const;
  Result<Entry> find(const std::string& attempted, const std::string& name) const;
  // arrays_access.cc: what is not here, `missing`, may have been drained. Else: missing, or why it
  // cannot be known.
  Result<std::shared_ptr<const Arrays>> elsewhere(const std::string& name,
                                                  const Error& missing) const;
  // Where arrays were drained to, the last one first, up to the first that cannot be opened: of
  // those behind it nothing is certain, for it may have another array of the name.
  struct Beyond {
    std::vector<std::shared_ptr<const Arrays>> there;
    std::optional<Error> away;
  };
  Beyond open_beyond() const;
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

  // arrays_sums.cc: checksums of what is not compressed.
  // Calls write(), and counts the box, from dense memory, at the same time. REQUIRES: the entry has
  // checksums.
  Status write_and_sum(const Entry& entry, const std::byte* from, const Dims& at, const Dims& box,
                       const std::function<Status()>& write);
  // All of the array is written anew, by us alone: what was counted before is gone.
  void forget_sums(uint64_t id);
  // Of several processes: what we counted, to where whoever closes last finds it.
  Status hand_over_sums();
  // The sums of all its blocks, into the container; what they cannot be known of is read again.
  // REQUIRES: a CatalogLock, and the traffic alone; nobody writes it.
  Status close_sums(Entry* entry);
  Result<uint64_t> sum_of_block(const Entry& entry, uint64_t block) const;

  // arrays_tiles.cc: boxes, shapes and tiles with the last dimension fastest.
  Status write_tiles(const Entry& entry, const std::byte* from, const Dims& at,
                     const Dims& box) const;
  Status read_tiles(const Entry& entry, std::byte* into, const Dims& at, const Dims& box) const;
  // ENOSYS: the library that packs cannot be loaded. REQUIRES: entry is compressed.
  Result<std::shared_ptr<const packing::Packer>> packer_of(const Entry& entry) const;
  // The same before there is room for it; one that is not compressed needs none.
  Status check_packer(const std::string& attempted, const Entry& entry) const;

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
uint64_t new_stamp();  // another one each time
ArrayInfo info_of(const Entry& entry);
// EINVAL: it is empty, too long, or has control characters.
Status check_name(const std::string& attempted, const std::string& name);
// As the storage has them: last dimension fastest.
Dims in_rows(const Entry& entry, const Dims& dims);
}  // namespace arrays

}  // namespace outcore
