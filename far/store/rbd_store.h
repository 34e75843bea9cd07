// RbdStore: an image in the block store of a Ceph cluster (RBD), whose objects are spread over all
// of its disks.
//
// Not fault safe, because librados has threads and locks of its own: I/O threads call it. A write
// that succeeded is on all replicas, because librbd's cache is off. Nothing hangs: if the cluster
// does not answer within the timeout, the result is -ETIMEDOUT, and the page stays dirty. An image
// has one writer (RbdLock) and any number of readers. A forked child gets -EIO from its parent's
// store. The reasons are in docs/internals/decisions/0010-rbd.md.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "core/store/written_map.h"
#include "far/store/rbd_connection.h"
#include "far/store/rbd_flights.h"
#include "far/store/rbd_lifetime.h"
#include "far/store/rbd_lock.h"
#include "outcore/snapshots.h"
#include "outcore/store.h"

namespace outcore::store {

struct RbdStoreOptions {
  std::string uri;  // for messages
  std::string pool;
  std::string name_space;
  std::string image;
  std::string snapshot;  // not empty: the image as it was then, read-only
  RbdAccess access;
  OpenOptions open;
  std::string parameters;       // of the access: any image of the cluster is opened with them
  bool is_interrupted = false;  // open it although a roll-back was interrupted
  unsigned order = 18;          // of a new image: objects of 2^order bytes
  bool is_thick = false;
  int64_t lifetime_ms = -1;  // 0: for ever; -1: the image's own; of a new image for ever
  unsigned read_concurrency = 0;
  unsigned write_concurrency = 0;

  std::string remedy_for(int error) const;  // for a -errno; empty: there is none
  // Connects to the pool. Errors: those of RbdLibrary::load and RbdConnection::open.
  Result<std::unique_ptr<RbdConnection>> connect(const std::string& what) const;
};

class RbdStore final : public Store, public Snapshots {
 public:
  // Opens the image. If this process has it open for writing already, that store is shared. Errors:
  // those of RbdConnection::open and RbdLock::lock, ENOENT (no image), ENOSPC (with the bytes
  // needed and free), EINVAL.
  static Result<std::shared_ptr<Store>> open(const RbdStoreOptions& options);
  // Removes the image that the options name. Errors: those of RbdConnection::open, ENOENT, EBUSY
  // (it is open somewhere), ENOTEMPTY (it has snapshots), EINVAL.
  static Status remove(const RbdStoreOptions& options);
  // The process ends: others need not wait for its locks.
  void retire() override;
  ~RbdStore() override;

  uint64_t size_bytes() const override { return size_bytes_.load(std::memory_order_acquire); }
  // -ESTALE: the image was removed meanwhile.
  int read(uint64_t offset, std::span<std::byte> into) override;
  int write(uint64_t offset, std::span<const std::byte> from) override;
  void transfer(std::span<StoreRequest> batch) override;
  int sync() override;  // -ESTALE: another writer has owned the image meanwhile
  int resize(uint64_t size_bytes) override;                    // -ENOSPC
  int reserve(uint64_t offset, uint64_t size_bytes) override;  // -ENOTSUP unless thick
  int discard(uint64_t offset, uint64_t size_bytes) override;
  int release(uint64_t offset, uint64_t size_bytes) override;
  bool is_hole(uint64_t offset, uint64_t size_bytes) const override;
  StoreTraits traits() const override { return traits_; }
  std::string uri() const override { return uri_; }
  std::string remark() const override;
  std::string identity() const override { return identity_; }

  // snapshots(): the names are those that `rbd snap ls` shows; notes are metadata of the image;
  // clones must be in the same pool (-EXDEV).
  Snapshots* snapshots() override { return this; }
  bool can_snapshot() const override { return is_writable_ && !is_snapshot_; }
  std::string cluster() const override { return connection_->identity(); }
  std::string place() const override { return place_; }
  std::string parameters() const override { return parameters_; }
  std::string copy_parameters() const override;
  int snapshot(const std::string& name) override;
  int remove_snapshot(const std::string& name) override;
  int list_snapshots(std::vector<std::string>* names) override;
  int roll_back(const std::string& name) override;
  int clone(const std::string& name, const std::string& place) override;
  int note(const std::string& key, const std::string& text) override;
  int remove_note(const std::string& key) override;
  int list_notes(const std::string& prefix, std::map<std::string, std::string>* notes) override;
  // Called for each range that was written or discarded since the snapshot (without one: ever), in
  // order. `has_data` is false where it reads zero now.
  using Visit = std::function<void(uint64_t offset, uint64_t size_bytes, bool has_data)>;
  int changed_since(const std::string& name, const Visit& visit);

 private:
  // The features of new images (docs/internals/decisions/0010-rbd.md).
  static constexpr uint64_t kFeatures = RBD_FEATURE_LAYERING | RBD_FEATURE_EXCLUSIVE_LOCK;

  RbdStore() = default;
  Status open_image(const RbdStoreOptions& options);
  Status open_once(const RbdStoreOptions& options, bool* is_going);
  int open_watched(const RbdStoreOptions& options, LifetimeNote* note);
  Status begin_lifetime(const RbdStoreOptions& options);
  Status change_lifetime(const RbdStoreOptions& options);
  RbdImage as_image() const { return {library_, connection_->pool(), image_, image_id_}; }
  int check_alive();
  Status take_lock();
  void reclaim_soon();
  bool reclaim_space(uint64_t wanted_bytes) const;
  Status create_image(const RbdStoreOptions& options);
  Status examine(const RbdStoreOptions& options);
  Status check_whole();
  int remove_notes_of(const std::string& image);
  Status fit_size(const OpenOptions& options);
  Status check_space(uint64_t more_bytes) const;
  bool has_space(uint64_t more_bytes, PoolSpace* space) const;
  int resize_image(uint64_t size_bytes);
  void watch_from(uint64_t offset);
  bool is_watched() const { return watched_from_.load(std::memory_order_acquire) != UINT64_MAX; }
  void begin(StoreRequest& request, bool is_silent, RbdFlights& flights);
  void note_answers(std::span<const StoreRequest> batch, bool was_silent);
  int refusal(bool is_change) const;  // 0, or why no request can succeed
  int zero(uint64_t offset, uint64_t size_bytes, int flags);
  int gaps(uint64_t from, uint64_t to, const std::function<int(uint64_t, uint64_t)>& visit);
  Status provide_space();
  void close();

  std::unique_ptr<RbdConnection> connection_;
  const RbdLibrary* library_ = nullptr;
  rbd_image_t image_ = nullptr;
  std::string image_id_;
  RbdLock lock_;
  RbdLifetime lifetime_;
  pid_t process_ = 0;
  std::string what_;  // "open rbd://pool/image", for messages
  std::string uri_;
  std::string place_, parameters_;
  std::string remark_;
  std::string identity_;
  StoreTraits traits_;
  std::atomic<uint64_t> size_bytes_{0};
  bool is_writable_ = false;
  bool is_snapshot_ = false;
  bool is_thick_ = false;
  bool is_new_ = false;
  std::atomic<uint64_t> silent_until_ns_{0};  // no OSD has answered: until then writes fail at once

  std::atomic<bool> lacks_space_{false};
  std::atomic<uint64_t> looked_ns_{0};  // when it was last found to exist
  std::atomic<bool> is_gone_{false};    // it was removed while it was read

  // As in FileStore. It is exact, because the exclusive lock keeps others from writing.
  WrittenMap written_;
  std::atomic<uint64_t> watched_from_{UINT64_MAX};
};

}  // namespace outcore::store
