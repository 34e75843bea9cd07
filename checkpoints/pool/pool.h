// Pool: several objects in one folder. What a checkpoint contains is never overwritten.
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

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "checkpoints/pool/block_heap.h"
#include "checkpoints/pool/chunk_map.h"
#include "checkpoints/pool/chunk_reader.h"
#include "checkpoints/pool/disk.h"
#include "checkpoints/pool/io_failure.h"
#include "checkpoints/pool/journal.h"
#include "checkpoints/pool/read_commits.h"
#include "checkpoints/pool/snapshot.h"
#include "checkpoints/pool/state.h"
#include "core/os/epoch_gate.h"

namespace outcore::versioned {

inline constexpr uint32_t kChunkBytesDefault = 4096;
inline constexpr size_t kCheckpointsMax = 100'000;
inline constexpr size_t kObjectsMax = 10'000;

// Success, or EINVAL: no object, nor a checkpoint that is renamed, can have this name.
Status check_name(const std::string& name, const std::string& attempted);

struct PoolOptions {
  bool may_create = false;
  uint32_t chunk_bytes = 0;  // 0: the pool's own; for a new pool kChunkBytesDefault
  // The journal gets a new base when the records since the last base are larger than that base, and
  // than this.
  uint64_t delta_bytes_min = 4 << 20;
};

// An object of an open pool. Handles stay valid when the object is removed: then all calls return
// -ENOENT.
class Object {
 public:
  const std::string& name() const { return name_; }
  uint32_t id() const { return id_; }
  uint64_t size_bytes() const { return size_bytes_.load(std::memory_order_acquire); }
  bool is_removed() const { return is_removed_.load(std::memory_order_acquire); }
  // A number that changes whenever contents of the object change, until the pool is closed.
  uint64_t state() const { return map_->sets(); }

 private:
  friend class Pool;
  friend class BatchWriter;
  Object(uint32_t id, std::string name) : name_(std::move(name)), id_(id) {}
  const std::string name_;
  const uint32_t id_;
  std::atomic<uint64_t> size_bytes_{0};
  std::atomic<bool> is_removed_{false};
  std::unique_ptr<ChunkMap> map_;
};

struct CheckpointInfo {
  Checkpoint about;
  uint64_t only_bytes = 0;  // what would become free if this checkpoint alone were removed
};

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
  std::vector<std::shared_ptr<Object>> objects() const;
  std::shared_ptr<Object> find(const std::string& name) const;  // nullptr: none
  Result<std::shared_ptr<Object>> create(const std::string& name, uint64_t size_bytes);  // EEXIST
  Status remove_object(const std::string& name);                                         // ENOENT
  int resize(Object& object, uint64_t size_bytes);  // never concurrent with itself

  // As the functions of Store, with the same rules. 0 or -errno; last_failure() has the message.
  // -ENXIO: past the object's end, which a rollback may move while the object is used. REQUIRES:
  // the bytes of `from` do not change during the call, or their checksum would be wrong.
  int read(Object& object, uint64_t offset, std::span<std::byte> into);
  int write(Object& object, uint64_t offset, std::span<const std::byte> from);
  void transfer(Object& object, std::span<StoreRequest> batch);
  int discard(Object& object, uint64_t offset, uint64_t size_bytes);
  bool is_hole(const Object& object, uint64_t offset, uint64_t size_bytes) const;
  void register_buffer(std::span<std::byte> buffer) { data_->register_buffer(buffer); }

  // Makes all objects durable as they are now, and returns the number of the commit. With a name it
  // is a checkpoint. Writers wait only while the changes are collected in memory. Errors: EEXIST
  // and EINVAL (names), and those of the disk. Then nothing more is durable than before, and the
  // commit may be tried again, unless an fsync failed: after that nobody knows what was stored, all
  // further commits fail, and reads still work.
  Result<uint32_t> commit(const std::string& name = {}, const std::string& comment = {});
  // Success, or why no commit can succeed any more. Waits for a commit that is under way.
  Status can_commit() const;
  // Whether a commit failed so that no other can succeed. Waits for nothing.
  bool is_lost() const { return is_lost_; }
  // From now on every commit fails with this error.
  void refuse_commits(const Error& why);
  // commit(), if something has changed. 0 or -errno.
  int sync();

  // For the regions that write objects. end_writer(): if it is the last, everything is committed.
  // After an error it is still one, unless `is_forced`: then its owner knows what is lost.
  void begin_writer() { writer_count_.fetch_add(1); }
  Status end_writer(bool is_forced);
  // Somebody writes objects who learns of the end only by what the destructor says.
  void note_store() { has_stores_ = true; }

  // Writes what was written so far to the disk. It is not part of a commit yet, but the next commit
  // takes less time.
  Status sync_data();
  // Locked by the thread that makes a checkpoint, from the first byte that it copies to the commit,
  // because a commit contains all objects. Locked before any other lock.
  std::mutex& making() { return making_; }

  std::vector<CheckpointInfo> checkpoints() const;  // ascending by number
  bool has_checkpoint(const std::string& name) const;
  // Removes all of them or none. Errors: ENOENT, EBUSY (somebody reads one of them; the message
  // says who), and those of the disk.
  Status remove(const std::vector<std::string>& names);
  Status rename(const std::string& from, const std::string& to);  // ENOENT, EEXIST
  // Makes the objects what they are in the checkpoint, and commits that. What was written since is
  // lost. If the commit fails, the objects are rolled back, but not durably.
  Status roll_back(const std::string& name);
  // Opens the checkpoint, or the last commit (an empty name), for reading while others write.
  Result<std::shared_ptr<Snapshot>> open_at(const std::string& name);

  Usage usage() const;
  uint32_t chunk_bytes() const { return chunk_bytes_; }
  uint32_t last_commit() const;
  std::string last_failure() const { return last_failure_.text(); }
  const Disk& disk() const { return *disk_; }
  // Checks what must hold between maps, heap and journal. For tests.
  bool is_valid() const;

 private:
  friend class BatchWriter;
  struct Cut;
  struct JournalFile {
    uint32_t number = 0;
    uint32_t first_commit = 0;
  };
  // Bytes that replace a part of a chunk; nullptr: zeros.
  struct Patch {
    uint64_t skipped = 0;
    const std::byte* bytes = nullptr;
    size_t size_bytes = 0;
  };

  explicit Pool(std::shared_ptr<Disk> disk) : disk_(std::move(disk)), folder_(disk_->name()) {}
  Status can_found(const PoolOptions& options) const;
  Status found(const PoolOptions& options);
  Status load(const PoolOptions& options, const std::vector<uint32_t>& numbers);
  Status adopt(Loaded& loaded);
  Status adopt_blocks(const State& state);
  Result<std::unique_ptr<Journal>> write_journal(uint32_t number, const State& state,
                                                 const MappedArray<Grave>& graves,
                                                 uint64_t sequence);

  static bool is_full(int error);
  int write_data(uint64_t offset, std::span<const std::byte> from);
  static bool is_inside(const Object& object, uint64_t offset, uint64_t size_bytes);
  int check_writable(const Object& object);
  int write_stretch(Object& object, uint64_t chunk, uint32_t count, const std::byte* from);
  int patch_chunk(Object& object, uint64_t chunk, std::span<const Patch> patches);
  int publish(Object& object, uint64_t chunk, uint32_t block, uint64_t sum);
  int discard_locked(Object& object, uint64_t offset, uint64_t size_bytes);
  int kill_all(Object& object);
  void note(int error, const char* what, const Object& object);

  Status check_usable(const std::string& attempted) const;
  Result<uint32_t> commit_locked(const std::string& name, const std::string& comment);
  void lose(const Error& why);
  int append(RecordType type, uint32_t commit, std::span<const std::byte> payload,
             Journal::How how);
  void drop_uncommitted();
  int carry_out(Cut& cut, bool& is_lost);
  void make_cut(Cut& cut);
  void undo_cut(Cut& cut);
  int write_commit(Cut& cut);
  void settle(Cut& cut);
  Status fail(int error, const std::string& attempted, bool is_lost);
  bool has_changes() const;
  bool is_taken(const std::string& name) const;
  std::vector<uint32_t> holds() const;
  void renew_base();
  Status write_new_base();
  void drop_journals();
  int restore(const State& state, std::vector<std::shared_ptr<Object>>& missing,
              MappedArray<uint32_t>& resurrected);
  int restore_object(Object& object, const StateObject& as, MappedArray<uint32_t>& resurrected);

  const std::shared_ptr<Disk> disk_;
  const std::string folder_;
  std::unique_ptr<File> data_;
  std::unique_ptr<BlockHeap> heap_;
  std::unique_ptr<ChunkReader> reader_;
  IoFailure last_failure_;
  uint32_t chunk_bytes_ = 0;
  uint64_t delta_bytes_min_ = 0;
  std::shared_ptr<ReadCommits> read_commits_ = std::make_shared<ReadCommits>();

  os::EpochGate gate_;                 // passed by writers that enter chunks into maps
  std::atomic<uint32_t> interval_{1};  // the number of the next commit; changes behind the gate
  // No commit that there is, or is under way, has blocks that were born so late. It grows behind
  // the gate. Less than interval_ after commits that failed.
  std::atomic<uint32_t> free_from_{1};
  std::array<os::Lock, 64> stripes_;  // locks of chunks that are written in parts
  std::mutex making_;

  // Guards all members below. A commit holds it to its end. Not the fault path.
  mutable std::mutex mutex_;
  std::map<uint32_t, std::shared_ptr<Object>> objects_;
  std::set<uint32_t> changed_objects_;  // created, resized or removed since the last commit
  // Those of them that a rollback brought back: records of them in the journal are void.
  std::set<uint32_t> reborn_objects_;
  uint32_t next_object_ = 1;
  uint64_t pool_id_ = 0;
  uint32_t last_commit_ = 0;
  std::vector<Checkpoint> checkpoints_;
  std::vector<uint32_t> lingering_;  // commits without a name that somebody still reads
  std::unique_ptr<Journal> journal_;
  uint64_t base_bytes_ = 0;
  uint64_t base_retry_ = 0;  // a new base is tried again when the journal is this long
  std::vector<JournalFile> journals_;
  Error lost_;             // why nothing can be committed any more; none so far
  bool is_closed_ = true;  // until there is something to close

  std::atomic<bool> is_lost_{false};  // lost_ is set, for those who do not have the lock
  std::atomic<uint32_t> writer_count_{0};
  std::atomic<bool> has_stores_{false};    // written by stores, so a loss has to be told
  std::atomic<bool> is_loss_told_{false};  // to the owner of the last writer
};

}  // namespace outcore::versioned
