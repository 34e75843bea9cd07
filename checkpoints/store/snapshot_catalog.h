// SnapshotCatalog: checkpoints that are snapshots of several stores, taken at one moment. They are
// noted with one of these stores, the anchor.
//
// A note says first that a checkpoint is being made, and of which stores; then, when all snapshots
// exist, that it is complete; and later that it is being removed. Only complete checkpoints can be
// seen. What a process that died has left of others is removed by the next change. While a
// roll-back is under way, each of its stores has a note that keeps others from using it. Any
// thread; the lock of the anchor excludes other processes. See
// docs/internals/decisions/0015-snapshots.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/store/snapshot_names.h"
#include "outcore/checkpoint_catalog.h"
#include "outcore/snapshots.h"
#include "outcore/store.h"

namespace outcore::store {

inline constexpr const char* kCopyNote = "copy_of";

// Shared by all who make checkpoints of a store, or with it as their anchor, while it is open:
// Snapshots::catalog_state.
struct SnapshotState {
  static SnapshotState& of(Store& store);
  std::mutex making;    // see checkpoints::CheckpointTarget
  std::mutex changing;  // guards the catalog
  std::mutex mutex;     // guards what follows
  // Of an anchor: the copies of objects that are not in its cluster, by object, and how often each
  // copy was written.
  std::map<std::string, std::shared_ptr<Store>> copies;
  std::map<std::string, std::shared_ptr<std::atomic<uint64_t>>> writes;
  Status refused;  // of a member: why no checkpoint can contain it until it is rolled back
};

struct SnapshotObject {
  std::string name, place;
  uint64_t size_bytes = 0;
};

struct SnapshotEntry {
  uint32_t number = 0;
  std::string name, comment;
  int64_t time_s = 0;
  std::vector<SnapshotObject> objects;
  enum class State : uint8_t { kMaking, kWhole, kRemoved } state = State::kWhole;
};

class SnapshotCatalog {
 public:
  // How a store is opened: as usual, or in the middle of a roll-back.
  using Open = std::function<Result<std::shared_ptr<Store>>(const std::string& uri,
                                                            const OpenOptions& options)>;
  static Result<std::shared_ptr<Store>> open_by_uri(const std::string& uri,
                                                    const OpenOptions& options);
  // The catalog of the store that the URI names. Errors: EINVAL (it has no snapshots), those of
  // opening it.
  static Result<SnapshotCatalog> open(const std::string& uri, bool is_writable,
                                      Open open = open_by_uri);
  // REQUIRES: the anchor has snapshots.
  SnapshotCatalog(std::shared_ptr<Store> anchor, Open open);

  Store& anchor() const { return *anchor_; }
  Snapshots& snapshots() const { return *anchor_->snapshots(); }
  // Opens another store of the anchor's system. For the anchor itself it returns the anchor.
  Result<std::shared_ptr<Store>> open_place(const std::string& place, bool is_writable) const;
  // Opens the copy of an object beside the anchor for writing, and creates it if there is none.
  // EEXIST: something else has its name.
  Result<std::shared_ptr<Store>> open_copy(const std::string& place, const std::string& object,
                                           uint64_t size_bytes) const;

  Result<std::vector<SnapshotEntry>> list() const;            // ascending by number
  Result<SnapshotEntry> find(const std::string& name) const;  // ENOENT, with the nearest
  const SnapshotObject* find_object(const SnapshotEntry& entry, const std::string& object) const;
  // The URI for open_store(): of an object as it is now, and as the checkpoint contains it.
  std::string uri_of(const SnapshotObject& object) const;
  std::string uri_of(const SnapshotEntry& entry, const SnapshotObject& object) const;

  struct Member {
    std::string name;
    Store* store = nullptr;
  };
  // Makes a checkpoint of what the stores hold now, and returns its number. REQUIRES: nobody writes
  // to them meanwhile. Errors: EEXIST, EINVAL, EBUSY (a roll-back is not finished), and those of
  // the system.
  Result<uint32_t> add(const std::string& name, const std::string& comment,
                       std::span<const Member> members);
  Status remove(const std::vector<std::string>& names);  // if one name is wrong, none is removed
  Status rename(const std::string& from, const std::string& to);
  // Error: EBUSY (one of its stores is in use in this process).
  Status roll_back(const std::string& name);
  Status clone(const std::string& name, const std::string& object, const std::string& place);
  // Reads all bytes of all snapshots, and returns the chunks that are damaged.
  Result<std::vector<DamagedChunk>> verify() const;

 private:
  std::string mark_of(const SnapshotEntry& entry) const;
  static std::string key_of(const SnapshotEntry& entry);
  std::string snapshot_name(uint32_t number) const;
  std::string uri_at(const std::string& place) const;
  Result<std::vector<SnapshotEntry>> list_all() const;
  Status write(const SnapshotEntry& entry);
  Status drop(const SnapshotEntry& entry);
  void drop_left_over(const std::vector<SnapshotEntry>& entries);
  Status check_members(std::span<const Member> members) const;
  Status take_snapshots(SnapshotEntry& entry, std::span<const Member> members);
  Status open_all(const SnapshotEntry& entry, std::vector<std::shared_ptr<Store>>* stores) const;
  Status check_unused(const std::vector<std::shared_ptr<Store>>& stores) const;
  Error failed(int error, const std::string& attempted, const std::string& remedy = {}) const;
  std::string what() const { return "checkpoints of " + snapshots().place(); }

  std::shared_ptr<Store> anchor_;
  Open open_;
  std::string prefix_;  // the names of our snapshots begin with it
};

CheckpointInfo info_of(const SnapshotEntry& entry);

}  // namespace outcore::store
