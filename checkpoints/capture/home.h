// Home: where checkpoints are kept: a versioned pool, or snapshots of stores that have them (Ceph).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/store/snapshot_catalog.h"
#include "core/paging/space.h"
#include "outcore/checkpoint_catalog.h"
#include "outcore/store.h"

namespace outcore::checkpoints {

// An object of the home that holds what is not of it: memory, or the bytes of another store.
struct Copy {
  std::shared_ptr<Store> store;
  uint64_t chunk_bytes = 0;  // written in whole ones
  // As ChangeLog::copy and copy_state. Null: nobody knows what it held before.
  std::shared_ptr<const void> whose;
  std::function<uint64_t()> state;
  std::function<void()> wrote;  // after each write to the store; empty: it counts by itself
};

class Home {
 public:
  virtual ~Home() = default;
  using Member = store::SnapshotCatalog::Member;

  virtual bool is_same(const Home& other) const = 0;
  // Whether the store is of it, and is held without being copied; and its name there.
  virtual bool has(Store& store) const = 0;
  virtual std::string object_of(Store& store) const = 0;
  virtual bool may_rename() const = 0;   // parts may have other names than that
  virtual bool commits_all() const = 0;  // what is of it is in each checkpoint, a part or not

  // Held by who makes a checkpoint, from the first byte that is copied for it. Taken before any
  // other lock.
  virtual std::mutex& making() = 0;
  virtual Result<bool> has_checkpoint(const std::string& name) = 0;
  // Made or brought to the size.
  virtual Result<Copy> copy_for(const std::string& object, uint64_t size_bytes) = 0;
  // What was copied so far is durable, and part of no checkpoint yet.
  virtual Status sync_copies() = 0;
  // What the members and copies hold becomes a checkpoint. Its number.
  virtual Result<uint32_t> commit(const std::string& name, const std::string& comment,
                                  std::span<const Member> members) = 0;
  // Every later commit with the store fails, for this reason.
  virtual void refuse_commits(Store& store, const Error& why) = 0;

  virtual Result<std::vector<CheckpointInfo>> checkpoints() = 0;  // ascending
  virtual Status remove(const std::vector<std::string>& names) = 0;
};

// Of versioned:FOLDER, made if there is none, or rbd://POOL/IMAGE, which must be there.
Result<std::shared_ptr<Home>> home_named(const std::string& uri);
// Of a space: its pool, or itself. Null: it has none. Errors: the system's.
Result<std::shared_ptr<Home>> home_of(const paging::Space& space);
// The first pool of the spaces; if there is none, the first that has snapshots.
Result<std::shared_ptr<Home>> home_of(std::span<const paging::Space* const> spaces);

// home_pool.cc, home_snapshots.cc
Result<std::shared_ptr<Home>> home_of_pool(const std::string& uri);
std::shared_ptr<Home> home_of_pool(Store& store);  // null: it is of none
std::shared_ptr<Home> home_of_snapshots(store::SnapshotCatalog catalog);

}  // namespace outcore::checkpoints
