// Pool: several objects in one folder. What a checkpoint contains is never overwritten. It owns the
// pieces beside it (OpenPool has what they share) and passes calls on to them.
//
// A pool has one writer at a time. A commit makes all objects durable as one state, whole or not at
// all. A checkpoint is a commit with a name; it is held until it is removed. What was written after
// the last commit is lost when the process dies or the power fails. For the format, and why it
// survives both, see docs/reference/versioned-format.md.
//
// Any thread. read() and write() may be called on the fault path: they allocate nothing, and take
// no lock that is held while something is allocated. The other functions may not. Sizes are in
// bytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoints/pool/checkpoints.h"
#include "checkpoints/pool/chunk_writer.h"
#include "checkpoints/pool/committer.h"
#include "checkpoints/pool/disk.h"
#include "checkpoints/pool/journal_chain.h"
#include "checkpoints/pool/object_table.h"
#include "checkpoints/pool/open_pool.h"
#include "checkpoints/pool/pool_opener.h"
#include "checkpoints/pool/rollback.h"
#include "checkpoints/pool/snapshot.h"

namespace outcore::versioned {

struct Usage {
  uint64_t chunk_bytes = 0;
  uint64_t file_bytes = 0;  // of the heap file, free blocks included
  uint64_t live_bytes = 0;  // of the objects as they are now
  uint64_t held_bytes = 0;  // needed only by checkpoints and open snapshots
  uint64_t free_bytes = 0;
  uint64_t map_bytes = 0;  // memory that the maps take
};

class Pool {
 public:
  // A folder that is not a pool stays as it was, unless a pool may be made of it.
  // Errors: EBUSY (another writer has the pool; the message says who), EINVAL (no pool, another
  // chunk size, or a newer format), EIO (damage: the message has the file, the offset, and which
  // checkpoints can still be read).
  static Result<std::shared_ptr<Pool>> open(std::shared_ptr<Disk> disk, const PoolOptions& options);
  // Commits what was written. If that fails, it is lost: call close() to get the error. Where
  // stores were opened, whose owners cannot, one line on standard error says so.
  ~Pool();
  // Commits, and notes that the pool was closed properly. Afterwards only reads and the destructor
  // are allowed. If the commit fails for a reason that may pass (a full disk), the pool stays open.
  Status close();

  // Objects. Changes to them are part of the next commit. Names are at most 255 bytes.
  std::vector<std::shared_ptr<Object>> objects() const { return objects_.list(); }
  // nullptr: there is none.
  std::shared_ptr<Object> find(const std::string& name) const { return objects_.find(name); }
  // EEXIST.
  Result<std::shared_ptr<Object>> create(const std::string& name, uint64_t size_bytes) {
    return objects_.create(name, size_bytes);
  }
  Status remove_object(const std::string& name) { return objects_.remove(name); }  // ENOENT
  // Never concurrent with itself.
  int resize(Object& object, uint64_t size_bytes) { return objects_.resize(object, size_bytes); }

  // As the functions of Store, with the same rules. 0 or -errno; last_failure() has the message.
  // -ENXIO: past the object's end, which a rollback may move while the object is used. REQUIRES:
  // the bytes of `from` do not change during the call, or their checksum would be wrong.
  int read(Object& object, uint64_t offset, std::span<std::byte> into);
  int write(Object& object, uint64_t offset, std::span<const std::byte> from);
  void transfer(Object& object, std::span<StoreRequest> batch);
  int discard(Object& object, uint64_t offset, uint64_t size_bytes);
  bool is_hole(const Object& object, uint64_t offset, uint64_t size_bytes) const;
  void register_buffer(std::span<std::byte> buffer) { pool_.data->register_buffer(buffer); }

  // Makes all objects durable as they are now, and returns the number of the commit. With a name it
  // is a checkpoint. Writers wait only while the changes are collected in memory. Errors: EEXIST
  // and EINVAL (names), and those of the disk. Then nothing more is durable than before, and the
  // commit may be tried again, unless an fsync failed: after that nobody knows what was stored, all
  // further commits fail, and reads still work.
  Result<uint32_t> commit(const std::string& name = {}, const std::string& comment = {}) {
    return committer_.commit(name, comment);
  }
  // Success, or why no commit can succeed any more. Waits for a commit that is under way.
  Status can_commit() const { return committer_.can_commit(); }
  // Whether a commit failed so that no other can succeed. Waits for nothing.
  bool is_lost() const { return pool_.is_lost; }
  // From now on every commit fails with this error.
  void refuse_commits(const Error& why) { committer_.refuse_commits(why); }
  // commit(), if something has changed. 0 or -errno.
  int sync() { return committer_.sync(); }

  // For the regions that write objects. end_writer(): if it is the last, everything is committed.
  // After an error it is still one, unless `is_forced`: then its owner knows what is lost.
  void begin_writer() { writer_count_.fetch_add(1); }
  Status end_writer(bool is_forced);
  // Somebody writes objects who learns of the end only by what the destructor says.
  void note_store() { has_stores_ = true; }

  // Writes what was written so far to the disk. It is not part of a commit yet, but the next commit
  // takes less time.
  Status sync_data() { return committer_.sync_data(); }
  // Locked by the thread that makes a checkpoint, from the first byte that it copies to the commit,
  // because a commit contains all objects. Locked before any other lock.
  std::mutex& making() { return making_; }

  // Ascending by number.
  std::vector<CheckpointInfo> checkpoints() const { return checkpoints_.list(); }
  bool has_checkpoint(const std::string& name) const { return checkpoints_.has(name); }
  // Removes all of them or none. Errors: ENOENT, EBUSY (somebody reads one of them; the message
  // says who), and those of the disk.
  Status remove(const std::vector<std::string>& names) { return checkpoints_.remove(names); }
  // ENOENT, EEXIST.
  Status rename(const std::string& from, const std::string& to) {
    return checkpoints_.rename(from, to);
  }
  // Makes the objects what they are in the checkpoint, and commits that. What was written since is
  // lost. If the commit fails, the objects are rolled back, but not durably.
  Status roll_back(const std::string& name) { return rollback_.roll_back(name); }
  // Opens the checkpoint, or the last commit (an empty name), for reading while others write.
  Result<std::shared_ptr<Snapshot>> open_at(const std::string& name) {
    return checkpoints_.open(name);
  }

  Usage usage() const;
  uint32_t chunk_bytes() const { return pool_.chunk_bytes; }
  uint32_t last_commit() const;
  std::string last_failure() const { return pool_.last_failure.text(); }
  const Disk& disk() const { return *pool_.disk; }
  // Checks what must hold between maps, heap and journal. For tests.
  bool is_valid() const;

 private:
  Pool(std::shared_ptr<Disk> disk, const PoolOptions& options)
      : pool_(std::move(disk)), journals_(pool_, options.delta_bytes_min) {}
  void drop_uncommitted();

  OpenPool pool_;
  ChunkWriter writer_{pool_};
  ObjectTable objects_{pool_, writer_};
  JournalChain journals_;
  Committer committer_{pool_, journals_};
  Checkpoints checkpoints_{pool_, journals_};
  Rollback rollback_{pool_, writer_, committer_};
  std::mutex making_;
  std::atomic<uint32_t> writer_count_{0};
  std::atomic<bool> has_stores_{false};    // written by stores, so a loss has to be told
  std::atomic<bool> is_loss_told_{false};  // to the owner of the last writer
};

}  // namespace outcore::versioned
