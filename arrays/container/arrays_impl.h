// ArraysImpl: an open container: its storage, its catalog, and the session in which it is written.
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
  uint64_t session = 0;  // the number of our session; 0: the container is only read
  std::atomic<bool> is_open{false};
  std::atomic<bool> has_failed{false};   // a write failed: what this session wrote is not finished
  std::atomic<bool> is_in_place{false};  // finished arrays are changed where they are
  const pid_t process = ::getpid();
  const int exceptions = std::uncaught_exceptions();  // that were on their way when it was opened
  // Locked shared while bytes of an array are transferred, and exclusively while arrays are
  // finished, replaced or removed, so that no transfer meets an array that goes away. Locked before
  // `mutex`.
  mutable std::shared_mutex traffic;
  mutable std::mutex mutex;                  // of the catalog
  mutable arrays::TileMutexes tile_mutexes;  // of compressed tiles
  mutable std::mutex packers_mutex;
  mutable std::map<std::pair<std::string, uint64_t>, std::shared_ptr<const packing::Packer>>
      packers;  // by packing and the bytes of a tile

  Runtime* runtime = nullptr;  // the one that the program has lent
  mutable std::mutex beyond_mutex;
  mutable std::map<std::string, std::shared_ptr<const Arrays>> beyond;  // by URI
  std::set<uint64_t> restamped;  // finished arrays that we change in place; guarded by mutex
  std::mutex sums_mutex;
  std::map<uint64_t, arrays::BlockSums> sums;  // of what we wrote, by id; guarded by sums_mutex
  bool has_checksums = true;                   // new arrays get checksums

  class CatalogLock;
  // session.cc
  Status begin();
  // Makes our arrays visible to others, durably and in one step with the rest of the change.
  // REQUIRES: a CatalogLock, and `traffic` locked exclusively.
  Status finish(arrays::Change change);
  bool may_free() const;  // space of removed arrays may be used again
  Status close();
  void abort();
  Status change_in_place(uint64_t id);

  // arrays.cc
  Error no_such(const std::string& attempted, const std::string& name) const;
  Result<Entry> find(const std::string& attempted, const std::string& name) const;
  // arrays_access.cc: an array that is missing here may have been drained: looks for it where
  // arrays have gone. Error: `missing` itself, or why the other container cannot be opened.
  Result<std::shared_ptr<const Arrays>> elsewhere(const std::string& name,
                                                  const Error& missing) const;
  // The containers that arrays were drained to, the last one first, up to the first that cannot be
  // opened. Those behind it do not count: the one that cannot be opened may have a newer array of
  // the same name.
  struct Beyond {
    std::vector<std::shared_ptr<const Arrays>> there;
    std::optional<Error> away;
  };
  Beyond open_beyond() const;
  Status check_open(const std::string& attempted) const;
  Status check_writable(const std::string& attempted) const;
  // Chooses the entry's id, place and session and adds it; `remove` go with the same record.
  // REQUIRES: a CatalogLock.
  Status make(const std::string& attempted, Entry* entry, uint64_t bytes,
              const std::vector<uint64_t>& remove);
  Status noted(Status s);  // an error that it has seen keeps the session from being finished
  // REQUIRES: `traffic` is locked, shared or exclusively.
  Status write_box(const std::string& attempted, const Entry& entry, const void* data,
                   const Dims& offsets, const Dims& dims);
  Status write_value(const std::string& attempted, const Entry& entry, const std::byte* from,
                     const arrays::Runs& runs);
  Status read_box(const Entry& entry, void* into, const Dims& offsets, const Dims& dims) const;

  // arrays_sums.cc: checksums of arrays that are not compressed. Calls write(), and adds up the box
  // from dense memory at the same time. REQUIRES: the entry has checksums.
  Status write_and_sum(const Entry& entry, const std::byte* from, const Dims& at, const Dims& box,
                       const std::function<Status()>& write);
  // This process alone writes the whole array anew: sums of its old content are dropped.
  void forget_sums(uint64_t id);
  // For a session of several processes: stores our sums where the process that closes last finds
  // them.
  Status hand_over_sums();
  // Stores the sums of all blocks in the container. Blocks whose sum is not known are read again.
  // REQUIRES: a CatalogLock, `traffic` locked exclusively, and nobody writes the array.
  Status close_sums(Entry* entry);
  Result<uint64_t> sum_of_block(const Entry& entry, uint64_t block) const;

  // verify.cc: as Catalog::find_header_damage(). REQUIRES: a CatalogLock.
  Result<std::string> header_damage() const;

  // arrays_tiles.cc: the last dimension of boxes, shapes and tiles varies fastest.
  Status write_tiles(const Entry& entry, const std::byte* from, const Dims& at,
                     const Dims& box) const;
  Status read_tiles(const Entry& entry, std::byte* into, const Dims& at, const Dims& box) const;
  // ENOSYS: the compression library cannot be loaded. REQUIRES: the entry is compressed.
  Result<std::shared_ptr<const packing::Packer>> packer_of(const Entry& entry) const;
  // The same check before space is allocated. Succeeds for an entry that is not compressed.
  Status check_packer(const std::string& attempted, const Entry& entry) const;

 private:
  Status begin_to_write();
  Status join();
  Status end(Status first);
  Status leave(const Status& first);
  Status wait_for_all();
};

// Locks the catalog between threads and processes, and reads what other processes of the session
// have changed in it.
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
uint64_t new_stamp();  // each call returns another one
ArrayInfo info_of(const Entry& entry);
// EINVAL: the name is empty, too long, or has control characters.
Status check_name(const std::string& attempted, const std::string& name);
// In the storage's order: the last dimension varies fastest.
Dims in_rows(const Entry& entry, const Dims& dims);
}  // namespace arrays

}  // namespace outcore
