// What lifetimes are to a store that is open: see rbd_lifetime.h.
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "far/store/rbd_reclaim.h"
#include "far/store/rbd_store.h"

namespace outcore::store {
namespace {

constexpr int kAttemptsMax = 40;  // until an image that is going is out of the way
constexpr uint64_t kAttemptNs = 100'000'000;
constexpr int kSpaceLooksMax = 20;  // the cluster counts its space every few seconds
constexpr uint64_t kSpaceLookNs = 500'000'000;

void pause(uint64_t ns) {
  std::atomic<uint32_t> nobody{0};
  os::wait(&nobody, 0, ns);
}

}  // namespace

// An image that is going has its name no longer than it takes to rename it, unless whoever did that
// has died.
Status RbdStore::open_image(const RbdStoreOptions& options) {
  is_writable_ = options.open.is_writable;
  is_thick_ = options.is_thick;
  for (int attempt = 0;; ++attempt) {
    bool is_going = false;
    if (Status s = open_once(options, &is_going); !s) return s;
    if (!is_going) return {};
    library_->rbd_close(image_);
    image_ = nullptr;
    if (!options.open.may_create)
      return Error{ENOENT, what_ +
                               ": its lifetime is over, and it is being given back: make it "
                               "anew, or give lifetime= a longer time"};
    std::string retired;
    const RbdReclaim reclaim(*library_, *connection_);
    const int error = reclaim.retire(options.image, &retired);
    if (error == 0 || error == -ENOENT) continue;
    if (error != -EBUSY || attempt == kAttemptsMax)
      return base::system_error(error, what_ + ": its lifetime is over; give back what is there",
                                "try again, or take another name");
    pause(kAttemptNs);
  }
}

Status RbdStore::open_once(const RbdStoreOptions& options, bool* is_going) {
  LifetimeNote note;
  int error = open_watched(options, &note);
  if (error == -ENOENT && options.open.may_create) {
    if (Status s = create_image(options); !s) return s;
    error = open_watched(options, &note);
  }
  if (error != 0) {
    if (image_ != nullptr) library_->rbd_close(image_);
    image_ = nullptr;
    return base::system_error(error, what_, options.remedy_for(error));
  }
  *is_going = note.is_going;
  identity_ = connection_->identity_of(image_id_, options.snapshot);
  return {};
}

// Who writes an image watches it. Who only reads one does if it has a lifetime, and so keeps it:
// the note is read when it is watched.
int RbdStore::open_watched(const RbdStoreOptions& options, LifetimeNote* note) {
  const char* const name = options.image.c_str();
  const char* const snapshot = options.snapshot.empty() ? nullptr : options.snapshot.c_str();
  const rados_ioctx_t pool = connection_->pool();
  for (bool is_watched : {is_writable_, true}) {
    rbd_image_t opened = nullptr;
    int error = is_watched ? library_->rbd_open(pool, name, &opened, snapshot)
                           : library_->rbd_open_read_only(pool, name, &opened, snapshot);
    // Who may only read is not seen.
    if (image_ != nullptr && (error == -EPERM || error == -EACCES || error == -EROFS)) return 0;
    if (error != 0) return error;
    if (image_ != nullptr) library_->rbd_close(image_);
    image_ = opened;
    std::array<char, 256> id = {};
    error = library_->rbd_get_id(image_, id.data(), id.size());
    if (error != 0) return error;
    image_id_ = id.data();
    error = read_lifetime(as_image(), note);
    if (error != 0 || is_watched || note->lifetime_ms == 0) return error;
  }
  return 0;
}

Status RbdStore::begin_lifetime(const RbdStoreOptions& options) {
  return lifetime_.begin(as_image(), options.lifetime_ms, what_,
                         [this](const std::atomic<uint32_t>& is_stopped) {
                           const RbdReclaim reclaim(*library_, *connection_);
                           std::vector<std::string> given_back;
                           if (reclaim.is_due()) reclaim.run(is_stopped, &given_back);
                         });
}

Status RbdStore::change_lifetime(const RbdStoreOptions& options) {
  return lifetime_.change(options.lifetime_ms, what_);
}

bool RbdStore::has_space(uint64_t more_bytes, PoolSpace* space) const {
  *space = connection_->space();
  return !space->bytes.has_value() || more_bytes <= *space->bytes;
}

bool RbdStore::reclaim_space(uint64_t wanted_bytes) const {
  const RbdReclaim reclaim(*library_, *connection_);
  std::vector<std::string> given_back;
  const std::atomic<uint32_t> is_stopped{0};
  if (reclaim.run(is_stopped, &given_back) != 0 || given_back.empty()) return false;
  PoolSpace space;
  for (int look = 0; look < kSpaceLooksMax; ++look) {
    if (has_space(wanted_bytes, &space)) return true;
    pause(kSpaceLookNs);
  }
  return false;
}

std::string RbdStore::copy_parameters() const {
  const uint64_t lifetime_ms = lifetime_.lifetime_ms();
  if (lifetime_ms == 0) return parameters_;
  return (parameters_.empty() ? "" : parameters_ + "&") +
         "lifetime=" + std::to_string(lifetime_ms) + "ms";
}

std::string RbdStore::remark() const {
  const uint64_t lifetime_ms = lifetime_.lifetime_ms();
  if (lifetime_ms == 0) return remark_;
  return remark_ + ", given back " + base::format_milliseconds(lifetime_ms) + " after its last use";
}

void RbdStore::retire() {
  if (refusal(true) == 0 && image_ != nullptr) RbdLock::release(*library_, image_);
}

}  // namespace outcore::store
