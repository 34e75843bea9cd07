// Pool: several objects in one folder, written without ever overwriting what a checkpoint holds.
//
// One writer at a time. A commit makes all objects durable as one state, whole or not at all; a
// checkpoint is a commit with a name, which is held until it is removed. What was written after
// the last commit is gone when the process or the power dies. The format, and why it survives both:
// docs/reference/versioned-format.md.
//
// Any thread. read() and write() are for the fault path: no allocation, no lock that is held
// while something is allocated; all else is not. Sizes are bytes.
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
#include "checkpoints/pool/pins.h"
#include "checkpoints/pool/snapshot.h"
#include "checkpoints/pool/state.h"
#include "core/os/epoch_gate.h"

namespace outcore::versioned {

inline constexpr uint32_t kChunkBytesDefault = 4096;
inline constexpr size_t kCheckpointsMax = 100'000;
inline constexpr size_t kObjectsMax = 10'000;

struct PoolOptions {
  bool may_create = false;
  uint32_t chunk_bytes = 0;  // 0: as it is; of a new pool kChunkBytesDefault
  // A new base is written when what was noted since the last is larger than it, and than this.
  uint64_t delta_bytes_min = 4 << 20;
};

// An object of a pool that is open. Handles stay valid when it is removed: then all is -ENOENT.
class Object {
 public:
  const std::string& name() const { return name_; }
  uint32_t id() const { return id_; }
  uint64_t size_bytes() const { return size_bytes_.load(std::memory_order_acquire); }
  bool is_removed() const { return is_removed_.load(std::memory_order_acquire); }
  // Another one each time that something of its contents changed, until the pool is closed.
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
  uint64_t only_bytes = 0;  // what its removal alone would give back
};

struct Usage {
  uint64_t chunk_bytes = 0;
  uint64_t file_bytes = 0;  // of the heap, with what is free in it
  uint64_t live_bytes = 0;  // of the objects as they are
  uint64_t held_bytes = 0;  // needed by checkpoints (and open snapshots) alone
  uint64_t free_bytes = 0;
  uint64_t map_bytes = 0;  // memory
};

// A chunk that verify() found not to be what was written.
struct BadChunk {
  std::string object;
  std::string checkpoint;  // empty: the last commit
  uint64_t chunk = 0;
  std::string why;
};

class Pool {
 public:
  // Errors: EBUSY (another writer has it, and who), EINVAL (no pool there, another chunk size, a
  // newer format), EIO (damage: which file and offset, and which checkpoints can still be read).
  static Result<std::shared_ptr<Pool>> open(std::shared_ptr<Disk> disk, const PoolOptions& options);
  // Commits what there is; if that fails it is lost: call close() to hear of it.
  ~Pool();
  // Commits, and says that the end was in peace. Only reads, and the destructor, may follow. If
  // the commit fails and may be tried again (a full disk), the pool stays open.
  Status close();

  // Objects. Changes to them are part of the next commit. Names are at most 255 bytes.
  std::vector<std::shared_ptr<Object>> objects() const;
  std::shared_ptr<Object> find(const std::string& name) const;  // nullptr: there is none
  Result<std::shared_ptr<Object>> create(const std::string& name, uint64_t size_bytes);  // EEXIST
  Status remove_object(const std::string& name);                                         // ENOENT
  int resize(Object& object, uint64_t size_bytes);  // never concurrent with itself

  // As the functions of Store, by the same rules. 0 or -errno; see last_failure(). -ENXIO: past the
  // object's end, which a rollback moves under those who use it. REQUIRES: what is
  // written does not change meanwhile: its checksum would be another's.
  int read(Object& object, uint64_t offset, std::span<std::byte> into);
  int write(Object& object, uint64_t offset, std::span<const std::byte> from);
  void transfer(Object& object, std::span<StoreRequest> batch);
  int discard(Object& object, uint64_t offset, uint64_t size_bytes);
  bool is_hole(const Object& object, uint64_t offset, uint64_t size_bytes) const;
  void register_buffer(std::span<std::byte> buffer) { data_->register_buffer(buffer); }

  // Makes all objects durable as they are now, and returns the commit's number. A name makes it a
  // checkpoint. Writes wait only while the changes are noted in memory. Errors: EEXIST, EINVAL
  // (names), what the disk said: then nothing is durable that was not before, and, but for an fsync
  // that failed, it may be tried again. After such an fsync nobody knows what was stored: every
  // further commit fails, reads go on.
  Result<uint32_t> commit(const std::string& name = {}, const std::string& comment = {});
  // Why no commit can succeed any more; or success.
  Status can_commit() const;
  // From now on every commit fails, for this reason.
  void refuse_commits(const Error& why);
  // commit(), unless nothing has changed. 0 or -errno.
  int sync();
  // What was written so far is on the disk, and part of no commit yet: the next takes less long.
  Status sync_data();
  // Held by who makes a checkpoint, from the first byte that is copied for it to its commit: a
  // commit is of all objects. Taken before any other lock.
  std::mutex& making() { return making_; }

  std::vector<CheckpointInfo> checkpoints() const;  // ascending by number
  bool has_checkpoint(const std::string& name) const;
  // All or none. Errors: ENOENT, EBUSY (somebody reads one of them, and who), what the disk said.
  Status remove(const std::vector<std::string>& names);
  Status rename(const std::string& from, const std::string& to);  // ENOENT, EEXIST
  // The objects become what they are in the checkpoint, and that is committed. What was not is
  // gone. If the commit fails they are what they are in the checkpoint, but not yet durable.
  Status roll_back(const std::string& name);
  // The checkpoint, or the last commit (empty), to read while writing goes on.
  Result<std::shared_ptr<Snapshot>> open_at(const std::string& name);

  // Reads every chunk that a checkpoint or the last commit refers to, each block once. At most
  // `bad_max` are told. Errors: what keeps it from looking.
  Result<std::vector<BadChunk>> verify(size_t bad_max = 1000);
  Usage usage() const;
  uint32_t chunk_bytes() const { return chunk_bytes_; }
  uint32_t last_commit() const;
  std::string last_failure() const { return last_failure_.text(); }
  const Disk& disk() const { return *disk_; }
  // What must hold between maps, heap and journal. For tests.
  bool is_valid() const;

 private:
  friend class BatchWriter;
  struct Cut;
  struct JournalFile {
    uint32_t number = 0;
    uint32_t first_commit = 0;
  };
  // Bytes that are laid over a chunk; nullptr: zeros.
  struct Patch {
    uint64_t skipped = 0;
    const std::byte* bytes = nullptr;
    size_t size_bytes = 0;
  };

  explicit Pool(std::shared_ptr<Disk> disk) : disk_(std::move(disk)), folder_(disk_->name()) {}
  Status found(const PoolOptions& options);
  Status load(const PoolOptions& options, const std::vector<uint32_t>& numbers);
  Status adopt(Loaded& loaded);
  Status adopt_blocks(const State& state);
  Result<std::unique_ptr<Journal>> write_journal(uint32_t number, const State& state,
                                                 const MappedArray<Grave>& graves,
                                                 uint64_t sequence);

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
  int carry_out(Cut& cut, bool& is_lost);
  void take_cut(Cut& cut);
  void give_back(Cut& cut);
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
  std::shared_ptr<Pins> pins_ = std::make_shared<Pins>();

  os::EpochGate gate_;                 // passed by who enters chunks into maps
  std::atomic<uint32_t> interval_{1};  // the number of the next commit; changes behind the gate
  std::array<os::Lock, 64> stripes_;   // of chunks that are written in parts
  std::mutex making_;

  // Guards all that follows, and is held by a commit to its end. Not the fault path.
  mutable std::mutex mutex_;
  std::map<uint32_t, std::shared_ptr<Object>> objects_;
  std::set<uint32_t> changed_objects_;  // made, resized or removed since the last commit
  // Of these, what a rollback brought back: what the journal may still have of it is void.
  std::set<uint32_t> reborn_objects_;
  uint32_t next_object_ = 1;
  uint64_t pool_id_ = 0;
  uint32_t last_commit_ = 0;
  std::vector<Checkpoint> checkpoints_;
  std::vector<uint32_t> lingering_;  // commits without a name that somebody still reads
  std::unique_ptr<Journal> journal_;
  uint64_t base_bytes_ = 0;
  uint64_t base_retry_ = 0;  // where the journal must end for another attempt at a new base
  std::vector<JournalFile> journals_;
  Error lost_;             // why nothing can be committed any more
  bool is_closed_ = true;  // until there is something to close
};

}  // namespace outcore::versioned
