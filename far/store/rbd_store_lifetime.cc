// Lifetimes of open stores: see rbd_lifetime.h.
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

constexpr int kAttemptsMax = 40;  // until an image that is being removed is out of the way
constexpr uint64_t kAttemptNs = 100'000'000;
constexpr uint64_t kLifeLookNs = 1'000'000'000;
constexpr int kSpaceLooksMax = 20;  // the cluster counts its space every few seconds
constexpr uint64_t kSpaceLookNs = 500'000'000;

void pause(uint64_t ns) {
  std::atomic<uint32_t> nobody{0};
  os::wait(&nobody, 0, ns);
}

}  // namespace

// An image that is being removed has its name only until it is renamed, unless the process that
// does this has died.
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
    const int error = reclaim.retire(options.image, std::atomic<uint32_t>(0), &retired);
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

// An open image is watched, which keeps it from being removed; so the note is read after the watch
// has begun. A client that may only read cannot watch.
int RbdStore::open_watched(const RbdStoreOptions& options, LifetimeNote* note) {
  const char* const name = options.image.c_str();
  const char* const snapshot = options.snapshot.empty() ? nullptr : options.snapshot.c_str();
  const rados_ioctx_t pool = connection_->pool();
  int error = library_->rbd_open(pool, name, &image_, snapshot);
  if (!is_writable_ && (error == -EPERM || error == -EACCES || error == -EROFS))
    error = library_->rbd_open_read_only(pool, name, &image_, snapshot);
  if (error != 0) {
    image_ = nullptr;
    return error;
  }
  std::array<char, 256> id = {};
  error = library_->rbd_get_id(image_, id.data(), id.size());
  if (error != 0) return error;
  image_id_ = id.data();
  return read_lifetime(as_image(), note);
}

// An image that is only read may be removed without its readers being seen: they may lack the right
// to watch it, or they were stopped until their watch ended. Objects that are gone read zero, so a
// reader has to check. A writer's lock is broken before a removal, so the cluster refuses its
// writes.
int RbdStore::check_alive() {
  if (is_gone_.load(std::memory_order_relaxed)) return -ESTALE;
  const uint64_t now = os::now_ns(), last = looked_ns_.load(std::memory_order_acquire);
  if (is_writable_ || (last != 0 && now - last < kLifeLookNs)) return 0;
  bool lives = false;
  if (const int error = is_living(as_image(), &lives); error != 0) return error;
  if (lives)
    looked_ns_.store(now, std::memory_order_release);
  else
    is_gone_.store(true, std::memory_order_relaxed);
  return lives ? 0 : -ESTALE;
}

// A process that checks whether an image can be removed locks the image for a moment.
Status RbdStore::take_lock() {
  for (int attempt = 0;; ++attempt) {
    Status taken = lock_.lock(*library_, image_, what_);
    if (taken.code() != EBUSY || attempt == kAttemptsMax) return taken;
    bool is_over = false;
    if (is_time_over(as_image(), &is_over) != 0 || !is_over) return taken;
    pause(kAttemptNs);
  }
}

Status RbdStore::begin_lifetime(const RbdStoreOptions& options) {
  return lifetime_.begin(as_image(), options.lifetime_ms, what_,
                         [this](const std::atomic<uint32_t>& is_stopped) {
                           const RbdReclaim reclaim(*library_, *connection_);
                           RbdReclaim::Outcome outcome;
                           if (lacks_space_.exchange(false) || reclaim.is_due())
                             reclaim.run(is_stopped, &outcome);
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
  const std::atomic<uint32_t> never{0};
  RbdReclaim::Outcome outcome;
  PoolSpace space;
  int error = 0;
  while ((error = reclaim.run(never, &outcome)) == -EALREADY) {
    outcome.has_others = true;
    pause(kSpaceLookNs);
    if (has_space(wanted_bytes, &space)) return true;
  }
  if (error != 0 || (outcome.given_back.empty() && !outcome.has_others)) return false;
  for (int look = 0; look < kSpaceLooksMax; ++look) {
    if (has_space(wanted_bytes, &space)) return true;
    pause(kSpaceLookNs);
  }
  return false;
}

// For callers that must not wait: their next attempt may find the space.
void RbdStore::reclaim_soon() {
  lacks_space_.store(true);
  static_cast<void>(lifetime_.run_task(what_));
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
