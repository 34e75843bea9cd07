// SnapshotCatalog: checkpoints that are snapshots of several stores, taken at one moment, and noted
// with one of these stores, the anchor.
//
// A note says first that a checkpoint is being made, and of what; when all snapshots are there,
// that it is whole; and when it goes, that it is removed. Only whole ones are seen; what a death
// has left of others is removed by the next change. While a roll-back is under way every store of
// it carries a note that refuses others. Any thread; the anchor's lock keeps other processes off.
// See docs/internals/decisions/0015-snapshots.md.
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

// What those share who make checkpoints of a store, or with it as their anchor, as long as it is
// open: Snapshots::catalog_state.
struct SnapshotState {
  static SnapshotState& of(Store& store);
  std::mutex making;    // see checkpoints::CheckpointTarget
  std::mutex changing;  // the catalog
  std::mutex mutex;     // of what follows
  // An anchor's: copies of what is not of its cluster, by object; and how often each was written
  // to.
  std::map<std::string, std::shared_ptr<Store>> copies;
  std::map<std::string, std::shared_ptr<std::atomic<uint64_t>>> writes;
  Status refused;  // a member's: why it can be in no checkpoint until it is rolled back
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
  // How stores are opened: whole or in the middle of a roll-back.
  using Open = std::function<Result<std::shared_ptr<Store>>(const std::string& uri,
                                                            const OpenOptions& options)>;
  static Result<std::shared_ptr<Store>> open_by_uri(const std::string& uri,
                                                    const OpenOptions& options);
  // Of the store that the URI names. Errors: EINVAL (it has no snapshots), those of opening it.
  static Result<SnapshotCatalog> open(const std::string& uri, bool is_writable,
                                      Open open = open_by_uri);
  // REQUIRES: the anchor has snapshots.
  SnapshotCatalog(std::shared_ptr<Store> anchor, Open open);

  Store& anchor() const { return *anchor_; }
  Snapshots& snapshots() const { return *anchor_->snapshots(); }
  // Of another store of the anchor's system; the anchor's own share.
  Result<std::shared_ptr<Store>> open_place(const std::string& place, bool is_writable) const;
  // The copy of an object beside the anchor, writable, made if there is none. EEXIST: what is there
  // is no such copy.
  Result<std::shared_ptr<Store>> open_copy(const std::string& place, const std::string& object,
                                           uint64_t size_bytes) const;

  Result<std::vector<SnapshotEntry>> list() const;            // ascending by number
  Result<SnapshotEntry> find(const std::string& name) const;  // ENOENT, with the nearest
  const SnapshotObject* find_object(const SnapshotEntry& entry, const std::string& object) const;
  // For open_store(): an object as it is now, and as the checkpoint has it.
  std::string uri_of(const SnapshotObject& object) const;
  std::string uri_of(const SnapshotEntry& entry, const SnapshotObject& object) const;

  struct Member {
    std::string name;
    Store* store = nullptr;
  };
  // What the stores hold now, under the name. REQUIRES: nobody writes to them meanwhile. Returns
  // its number. Errors: EEXIST, EINVAL, EBUSY (a roll-back is not done), what the system said.
  Result<uint32_t> add(const std::string& name, const std::string& comment,
                       std::span<const Member> members);
  Status remove(const std::vector<std::string>& names);  // names that are wrong: none of them
  Status rename(const std::string& from, const std::string& to);
  // EBUSY: a store of it is in use in this process.
  Status roll_back(const std::string& name);
  Status clone(const std::string& name, const std::string& object, const std::string& place);
  // Reads all bytes of all snapshots.
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
  std::string prefix_;  // of our snapshots' names
};

CheckpointInfo info_of(const SnapshotEntry& entry);

}  // namespace outcore::store
