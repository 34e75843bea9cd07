// How an RbdStore is opened and closed: the image is found or created, locked, and made large
// enough.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/process_lock.h"
#include "core/store/snapshot_names.h"
#include "far/store/rbd_store.h"

namespace outcore::store {
namespace {

constexpr uint64_t kWatchUnitBytes = 64 << 10;
constexpr uint64_t kWatchCapacityMin = uint64_t{1} << 40;
constexpr uint64_t kGapStepBytes = uint64_t{1} << 30;  // so much is asked about at a time
constexpr unsigned kReadConcurrency = 64;

// The images that this process has open for writing, by identity.
class OpenImages {
 public:
  std::shared_ptr<RbdStore> find(const std::string& identity) {
    const os::SignalBlock block;
    const std::lock_guard<os::ProcessLock> guard(lock_);
    if (process_ != ::getpid()) stores_.clear();  // they belong to the parent of this forked child
    const auto found = stores_.find(identity);
    return found == stores_.end() ? nullptr : found->second.lock();
  }
  void add(const std::string& identity, const std::shared_ptr<RbdStore>& store) {
    const os::SignalBlock block;
    const std::lock_guard<os::ProcessLock> guard(lock_);
    if (process_ != ::getpid()) stores_.clear();
    process_ = ::getpid();
    std::erase_if(stores_, [](const auto& one) { return one.second.expired(); });
    stores_[identity] = store;
  }

 private:
  os::ProcessLock lock_;
  pid_t process_ = 0;
  std::map<std::string, std::weak_ptr<RbdStore>> stores_;
};

OpenImages& open_images() {
  static OpenImages* const images = new OpenImages;  // outlives static stores
  return *images;
}

}  // namespace

std::string RbdStoreOptions::remedy_for(int error) const {
  switch (-error) {
    case ENOENT:
      return "check the name, or give size= and open it writable to create it";
    case EPERM:
    case EACCES:
      return "client." + access.id + " lacks the right: ceph auth caps client." + access.id +
             " mon 'profile rbd' osd 'profile rbd pool=" + pool + "'";
    default:
      return {};
  }
}

Result<std::unique_ptr<RbdConnection>> RbdStoreOptions::connect(const std::string& what) const {
  Result<const RbdLibrary*> library = RbdLibrary::load();
  if (!library) return library.error();
  return RbdConnection::open(*library.value(), access, pool, name_space, what);
}

Result<std::shared_ptr<Store>> RbdStore::open(const RbdStoreOptions& options) {
  Result<const RbdLibrary*> library = RbdLibrary::load();
  if (!library) return library.error();
  std::shared_ptr<RbdStore> store(new RbdStore);
  store->process_ = ::getpid();
  store->library_ = library.value();
  store->uri_ = options.uri;
  store->place_ =
      "rbd://" + options.pool + "/" +
      (options.name_space.empty() ? options.image : options.name_space + "/" + options.image);
  store->parameters_ = options.parameters;
  store->is_snapshot_ = !options.snapshot.empty();
  store->what_ = "open " + store->place_ + (options.snapshot.empty() ? "" : "@" + options.snapshot);
  if (options.open.may_create && !options.open.is_writable)
    return Error{EINVAL, store->what_ + ": to create or extend it, open it writable"};
  if (options.open.is_writable && !options.snapshot.empty())
    return Error{EINVAL, store->what_ + ": a snapshot cannot be written: open it read-only"};
  auto connection = RbdConnection::open(*library.value(), options.access, options.pool,
                                        options.name_space, store->what_);
  if (!connection) return connection.error();
  store->connection_ = std::move(connection).value();
  if (Status s = store->open_image(options); !s) return s.error();
  if (const auto shared = open_images().find(store->identity_)) {
    if (!options.is_interrupted)
      if (Status s = shared->check_whole(); !s) return s.error();
    if (Status s = shared->fit_size(options.open); !s) return s.error();
    if (Status s = shared->change_lifetime(options); !s) return s.error();
    return std::shared_ptr<Store>(shared);
  }
  if (Status s = store->examine(options); !s) {
    store->close();
    const std::string name = options.image;
    if (store->is_new_) store->library_->rbd_remove(store->connection_->pool(), name.c_str());
    return s.error();
  }
  if (store->is_writable_) open_images().add(store->identity_, store);
  return std::shared_ptr<Store>(std::move(store));
}

Status RbdStore::remove(const RbdStoreOptions& options) {
  const std::string what = "remove rbd://" + options.pool + "/" + options.image;
  if (!options.snapshot.empty())
    return Error{EINVAL, what + ": a snapshot is named: leave out '@" + options.snapshot + "'"};
  const auto connection = options.connect(what);
  if (!connection) return connection.status();
  const RbdLibrary& library = connection.value()->library();
  const int error = library.rbd_remove(connection.value()->pool(), options.image.c_str());
  switch (-error) {
    case 0:
      return {};
    case EBUSY:
      return base::system_error(error, what,
                                "somebody has it open, or had it and was killed: wait, at most "
                                "30 s, and try again");
    case ENOTEMPTY:
      return base::system_error(error, what,
                                "it has snapshots: remove them first (rbd snap purge)");
    default:
      return base::system_error(error, what, options.remedy_for(error));
  }
}

Status RbdStore::create_image(const RbdStoreOptions& options) {
  if (Status s = check_space(options.open.size_bytes); !s) return s;
  int order = static_cast<int>(options.order);
  const int error = library_->rbd_create2(connection_->pool(), options.image.c_str(),
                                          options.open.size_bytes, kFeatures, &order);
  is_new_ = error == 0;
  if (error == 0 || error == -EEXIST) return {};  // another process has created it first
  return base::system_error(error, what_ + ": create it", options.remedy_for(error));
}

Status RbdStore::examine(const RbdStoreOptions& options) {
  if (is_writable_) {
    if (Status s = take_lock(); !s) return s;
    if (Status s = begin_lifetime(options); !s) return s;
  }
  rbd_image_info_t about;
  if (const int error = library_->rbd_stat(image_, &about, sizeof about); error != 0)
    return base::system_error(error, what_ + ": ask for its size");
  size_bytes_ = about.size;
  remark_ = "objects of " + base::format_bytes(about.obj_size);
  traits_.can_read_while_written = true;
  traits_.has_many_in_flight = true;
  traits_.read_concurrency =
      options.read_concurrency != 0 ? options.read_concurrency : kReadConcurrency;
  traits_.write_concurrency = options.write_concurrency;
  if (is_new_) watch_from(0);
  if (!is_new_ && options.snapshot.empty() && !options.is_interrupted)
    if (Status s = check_whole(); !s) return s;
  if (Status s = fit_size(options.open); !s) return s;
  return is_writable_ && is_thick_ ? provide_space() : Status();
}

// A roll-back that was interrupted has left the image neither as it was nor as it should be.
Status RbdStore::check_whole() {
  std::string to;
  const int error = find_roll_back(*this, &to);
  if (error != 0) return base::system_error(error, what_ + ": ask whether it is whole");
  if (to.empty()) return {};
  return Error{EBUSY, what_ + ": it is being rolled back to " + to +
                          ", or was when that was interrupted: roll it back again, to the end "
                          "(outcore checkpoint rollback)"};
}

Status RbdStore::fit_size(const OpenOptions& options) {
  const uint64_t wanted = options.size_bytes, have = size_bytes();
  if (wanted <= have) return {};
  const std::string attempted = what_ + ": it has " + std::to_string(have) + " bytes, " +
                                std::to_string(wanted) + " are asked for";
  if (!options.may_create)
    return Error{EINVAL, attempted + ": ask for less, or allow to extend it"};
  if (Status s = check_space(wanted - have); !s) return s;
  if (const int error = resize_image(wanted); error != 0)
    return base::system_error(error, attempted + "; extend it");
  return {};
}

Status RbdStore::check_space(uint64_t more_bytes) const {
  PoolSpace space;
  if (has_space(more_bytes, &space) || reclaim_space(more_bytes)) return {};
  return Error{ENOSPC, what_ + ": " + base::format_bytes(more_bytes) + " more are needed, and " +
                           base::format_bytes(*space.bytes) + " are left in the pool '" +
                           connection_->pool_name() + "' (" + space.reason +
                           "): ask for less, or free space"};
}

void RbdStore::watch_from(uint64_t offset) {
  if (watched_from_.load(std::memory_order_relaxed) != UINT64_MAX) return;
  // Without a map no hole is known, which is always correct.
  if (written_.cover(std::max(kWatchCapacityMin, size_bytes() * 2), kWatchUnitBytes) != 0) return;
  watched_from_.store(offset, std::memory_order_release);
}

// Calls visit for every range that has no space of its own yet.
int RbdStore::gaps(uint64_t from, uint64_t to,
                   const std::function<int(uint64_t, uint64_t)>& visit) {
  struct Seen {
    uint64_t end;
    std::vector<std::pair<uint64_t, uint64_t>> gaps;
  };
  for (uint64_t step = from; step < to; step += kGapStepBytes) {
    const uint64_t end = std::min(to, step + kGapStepBytes);
    Seen seen{step, {}};
    const int error = library_->rbd_diff_iterate2(
        image_, nullptr, step, end - step, 1, 0,
        [](uint64_t offset, size_t size_bytes, int exists, void* with) {
          Seen& known = *static_cast<Seen*>(with);
          if (exists == 0) return 0;
          if (offset > known.end) known.gaps.emplace_back(known.end, offset - known.end);
          known.end = std::max<uint64_t>(known.end, offset + size_bytes);
          return 0;
        },
        &seen);
    if (error != 0) return error;
    if (seen.end < end) seen.gaps.emplace_back(seen.end, end - seen.end);
    for (const auto& [offset, size] : seen.gaps)
      if (const int stop = visit(offset, size); stop != 0) return stop;
  }
  return 0;
}

// Writes zeros where nothing was ever written. Nobody writes meanwhile: the image is locked, and
// the store has not been returned yet. If this is interrupted, the next open does it.
Status RbdStore::provide_space() {
  uint64_t missing = 0;
  int error = gaps(0, size_bytes(), [&](uint64_t, uint64_t size) {
    missing += size;
    return 0;
  });
  if (error == 0 && missing != 0) {
    if (Status s = check_space(missing); !s) return s;
    error = gaps(0, size_bytes(), [this](uint64_t offset, uint64_t size) {
      return zero(offset, size, RBD_WRITE_ZEROES_FLAG_THICK_PROVISION);
    });
  }
  if (error == 0) return {};
  return base::system_error(error, what_ + ": write zeros to all of it (thick=yes)");
}

void RbdStore::close() {
  lifetime_.end();
  if (image_ != nullptr) library_->rbd_close(image_);  // this releases the lock
  image_ = nullptr;
}

RbdStore::~RbdStore() {
  if (process_ != ::getpid()) {  // in a forked child the parent's threads cannot answer
    static_cast<void>(connection_.release());
    lifetime_.forget();
    return;
  }
  close();
}

}  // namespace outcore::store
