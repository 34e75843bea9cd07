// CheckpointTarget: the place where checkpoints are kept: a versioned pool, or snapshots of stores
// that have them (Ceph).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/store/snapshot_catalog.h"
#include "core/paging/page_cache.h"
#include "outcore/checkpoint_catalog.h"
#include "outcore/store.h"

namespace outcore::checkpoints {

// An object of the target that holds a copy: of memory, or of a store that is not in the target.
struct Copy {
  std::shared_ptr<Store> store;
  uint64_t chunk_bytes = 0;  // the copy is written in whole chunks of this size
  // As ChangeLog::copy and copy_state. Null: what the object held before is not known.
  std::shared_ptr<const void> whose;
  std::function<uint64_t()> state;
  // Called after each write to the store; empty: the store counts its writes itself.
  std::function<void()> wrote;
};

class CheckpointTarget {
 public:
  virtual ~CheckpointTarget() = default;
  using Member = store::SnapshotCatalog::Member;

  virtual bool is_same(const CheckpointTarget& other) const = 0;
  // Whether the store belongs to the target, so that a checkpoint holds it without a copy; and the
  // store's name in the target.
  virtual bool has(Store& store) const = 0;
  virtual std::string object_of(Store& store) const = 0;
  virtual bool may_rename() const = 0;  // parts may have names other than object_of()
  // Every store of the target is in each checkpoint, whether it is one of the parts or not.
  virtual bool commits_all() const = 0;

  // Locked by the thread that makes a checkpoint, from before the first byte is copied until the
  // commit. It must be locked before any other lock.
  virtual std::mutex& making() = 0;
  virtual Result<bool> has_checkpoint(const std::string& name) = 0;
  // Creates the object, or resizes it to `size_bytes`.
  virtual Result<Copy> copy_for(const std::string& object, uint64_t size_bytes) = 0;
  // Makes durable what was copied so far; it is not part of a checkpoint yet.
  virtual Status sync_copies() = 0;
  // Makes a checkpoint of the members and copies as they are now, and returns its number.
  virtual Result<uint32_t> commit(const std::string& name, const std::string& comment,
                                  std::span<const Member> members) = 0;
  // From now on every commit that contains the store fails with this error.
  virtual void refuse_commits(Store& store, const Error& why) = 0;

  virtual Result<std::vector<CheckpointInfo>> checkpoints() = 0;  // ascending
  virtual Status remove(const std::vector<std::string>& names) = 0;
};

// The target that a URI names: versioned:FOLDER, created if it does not exist, or rbd://POOL/IMAGE,
// which must exist.
Result<std::shared_ptr<CheckpointTarget>> open_target(const std::string& uri);
// The target of a cache's store: its pool, or the store itself if it has snapshots. Null: it has no
// target. Errors: those of the system.
Result<std::shared_ptr<CheckpointTarget>> target_of(const paging::PageCache& cache);
// The pool of the first cache that has one; otherwise the first store that has snapshots.
Result<std::shared_ptr<CheckpointTarget>> target_of(
    std::span<const paging::PageCache* const> caches);

// target_pool.cc, target_snapshots.cc
Result<std::shared_ptr<CheckpointTarget>> target_of_pool(const std::string& uri);
std::shared_ptr<CheckpointTarget> target_of_pool(Store& store);  // null: the store is in no pool
std::shared_ptr<CheckpointTarget> target_of_snapshots(store::SnapshotCatalog catalog);

}  // namespace outcore::checkpoints
