// OpenPool: the state that the pieces of an open pool share: its files, its objects as they are
// now, which commits count, and whether more can follow. It decides nothing. `Pool` owns it and the
// pieces beside it (ChunkWriter, ObjectTable, JournalChain, Committer, Checkpoints, Rollback), and
// these hold references to it and to pieces below them.
//
// Any thread. The fault path reads the members above the gate and passes the gate; it never locks
// the mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checkpoints/pool/block_heap.h"
#include "checkpoints/pool/chunk_reader.h"
#include "checkpoints/pool/disk.h"
#include "checkpoints/pool/format.h"
#include "checkpoints/pool/io_failure.h"
#include "checkpoints/pool/object.h"
#include "checkpoints/pool/read_commits.h"
#include "core/os/epoch_gate.h"

namespace outcore::versioned {

// Success, or EINVAL: no object, nor a checkpoint that is renamed, can have this name.
Status check_name(const std::string& name, const std::string& attempted);

// Makes room, so that one push_back() cannot fail.
template <typename T>
void make_room_for_one(std::vector<T>& in) {
  if (in.size() == in.capacity()) in.reserve(in.size() * 2 + 16);
}

struct OpenPool {
  explicit OpenPool(std::shared_ptr<Disk> where) : disk(std::move(where)), folder(disk->name()) {}
  OpenPool(const OpenPool&) = delete;
  OpenPool& operator=(const OpenPool&) = delete;

  // 0; or -ENOENT (the object is removed), -EPERM (the pool is the parent process's).
  int check_writable(const Object& object);
  // Keeps the message of an access that failed. The fault path.
  void note(int error, const char* what, const Object& object);

  // REQUIRES, of all functions below: the mutex.
  // Success, or why no commit can succeed any more.
  Status check_usable(const std::string& attempted) const;
  // The error as it is told to the caller, and kept as the last one. `is_uncertain`: it is unknown
  // what is on the disk, so no other commit can succeed.
  Status fail(int error, const std::string& attempted, bool is_uncertain);
  // From now on every commit fails. The first reason counts.
  void lose(const Error& why);
  // Whether something has changed since the last commit.
  bool has_changes() const;
  // The numbers of the commits whose blocks are kept, ascending.
  std::vector<uint32_t> held_commits() const;
  // nullptr: there is none of this name.
  std::shared_ptr<Object> find_object(const std::string& name) const;
  bool has_checkpoint(const std::string& name) const;
  // ENOENT: there is none of this name.
  Result<Checkpoint*> find_checkpoint(const std::string& name, const std::string& attempted);
  // Checks that every block of a map is in use exactly once, and that blocks and graves add up.
  bool is_valid() const;

  const std::shared_ptr<Disk> disk;
  const std::string folder;
  // PoolOpener sets these four; afterwards they are constant.
  std::unique_ptr<File> data;
  std::unique_ptr<BlockHeap> heap;
  std::unique_ptr<ChunkReader> reader;
  uint32_t chunk_bytes = 0;
  IoFailure last_failure;
  const std::shared_ptr<ReadCommits> read_commits = std::make_shared<ReadCommits>();

  os::EpochGate gate;                 // passed by writers that enter chunks into maps
  std::atomic<uint32_t> interval{1};  // the number of the next commit; changes behind the gate
  // No commit that there is, or is under way, has blocks that were born so late. It grows behind
  // the gate. Less than the interval after commits that failed.
  std::atomic<uint32_t> free_from{1};
  std::atomic<bool> is_lost{false};  // `lost` is set, for those who do not have the mutex

  // Guards all members below, and the journals. A commit holds it to its end. Not the fault path.
  mutable std::mutex mutex;
  std::map<uint32_t, std::shared_ptr<Object>> objects;
  std::set<uint32_t> changed_objects;  // created, resized or removed since the last commit
  // Those of them that a rollback brought back: records of them in the journal are void.
  std::set<uint32_t> reborn_objects;
  uint32_t next_object = 1;
  uint32_t last_commit = 0;
  std::vector<Checkpoint> checkpoints;  // ascending by number
  std::vector<uint32_t> lingering;      // commits without a name that somebody still reads
  Error lost;                           // why nothing can be committed any more; none so far
  bool is_closed = true;                // until there is something to close
};

}  // namespace outcore::versioned
