#include "far/store/redis_writers.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/os/wait.h"
#include "far/store/redis_store.h"

namespace outcore::store {
namespace {

using redis::SharedLease;

constexpr uint64_t kLockWaitNs = 60'000'000'000;  // longer than a lease, so that an end is noticed
constexpr uint64_t kHearNsMax = (redis::kLeaseMs + 5'000) * 1'000'000;
constexpr uint64_t kAskNs = 2'000'000'000;
constexpr uint64_t kPauseNsMin = 200'000, kPauseNsMax = 20'000'000;

class RedisWriters final : public SharedWriters {
 public:
  RedisWriters(std::shared_ptr<RedisStore> store, std::string uri)
      : store_(std::move(store)), uri_(std::move(uri)) {}

  Store& store() override { return *store_; }

  Status lock(const std::string& what, bool may_wait) override {
    const os::SignalBlock block;
    const uint64_t until_ns = base::now_ns() + kLockWaitNs;
    for (uint64_t pause_ns = kPauseNsMin;; pause_ns = std::min(2 * pause_ns, kPauseNsMax)) {
      if (!store_->has_lease()) return explain(-ESTALE, "write " + uri_);
      const auto answer = lease().lock(what);
      if (!answer) return unknown(answer.status());
      if (answer->outcome == SharedLease::Outcome::kDone) {
        store_->note_size(answer->size_bytes);
        return {};
      }
      if (answer->outcome == SharedLease::Outcome::kBroken) return broken(answer.value());
      if (!may_wait)
        return Error{EAGAIN, "lock " + what + " of " + uri_ + ": " + answer->who + " has it"};
      if (base::now_ns() > until_ns)
        return Error{ETIMEDOUT, "lock " + what + " of " + uri_ + ": " + answer->who +
                                    " has had it for a minute: see what it waits for, or end it"};
      pause(pause_ns);
    }
  }

  // Not unlocked if a change that was made under the lock may still be carried out: then the lock
  // ends with the lease.
  void unlock(const std::string& what) override {
    const os::SignalBlock block;
    if (store_->has_lease()) static_cast<void>(unknown(lease().unlock(what)));
  }

  Status be_writer(bool is_one) override {
    const os::SignalBlock block;
    if (!store_->has_lease()) return explain(-ESTALE, "write " + uri_);
    return lease().set_state(is_one ? SharedLease::State::kWriting : SharedLease::State::kOpen);
  }

  Result<bool> are_other_writers() override {
    const os::SignalBlock block;
    if (!store_->has_lease()) return explain(-ESTALE, "write " + uri_);
    const auto answer = lease().others(0, true);
    if (!answer) return answer.error();
    if (answer->outcome == SharedLease::Outcome::kBroken) return broken(answer.value()).error();
    if (answer->dead > 0) return ended(answer->who).error();
    return answer->alive > 0;
  }

  Status hear_of_others() override {
    const os::SignalBlock block;
    if (!store_->has_lease()) return explain(-ESTALE, "write " + uri_);
    if (Status s = lease().set_state(SharedLease::State::kClosing); !s) return s;
    const uint64_t until_ns = base::now_ns() + kHearNsMax;
    uint64_t since_ms = 0;
    for (uint64_t pause_ns = kPauseNsMin;; pause_ns = std::min(2 * pause_ns, kPauseNsMax)) {
      const auto answer = lease().others(since_ms, false);
      if (!answer) return answer.status();
      if (answer->dead > 0) return ended(answer->who);
      if (since_ms != 0 && answer->unheard == 0) return {};
      if (answer->alive == 0 || base::now_ns() > until_ns) return {};
      if (since_ms == 0)
        since_ms = answer->now_ms;
      else
        pause(pause_ns);
    }
  }

  void leave() override { store_->leave(); }

  Error explain(int error, const std::string& attempted) override {
    const int code = error < 0 ? -error : error;
    const auto told = [&](const std::string& why) { return Error{code, attempted + ": " + why}; };
    if (code != ESTALE && code != EIO)
      return told(std::string(::strerrordesc_np(code)) +
                  (code == ENOSPC
                       ? ": the servers' memory is full or booked: remove stores (outcore store "
                         "ls, rm), or add servers"
                       : " (" + store_->remark() + ")"));
    // When others take the fences, a member's counts disappear, which looks like a loss to it.
    const os::SignalBlock block;
    if (code == EIO && lease().renew(kAskNs).code() != ESTALE)
      return told(
          "its servers lost some of it (more of them failed than there were replicas): "
          "remove it and store it anew");
    return {ESTALE, attempted +
                        ": this process, or another of those that write it together, was silent "
                        "for longer than its lease: what was being written is absent: open it "
                        "again"};
  }

 private:
  SharedLease& lease() { return store_->shared_lease(); }

  // It is unknown whether we have the lock.
  Status unknown(Status s) {
    if (!s.ok()) store_->stop_renewing();
    return s;
  }

  static void pause(uint64_t ns) {
    std::atomic<uint32_t> nobody{0};
    os::wait(&nobody, 0, ns);
  }

  Status ended(const std::string& who) const {
    return Error{EIO, "write " + uri_ + ": " + who +
                          ", which writes it too, has ended or was silent for " +
                          std::to_string(redis::kLeaseMs / 1000) +
                          " s: what was being written is absent: open it again"};
  }

  Status broken(const SharedLease::Answer& answer) {
    store_->break_lease(answer.fence_token);
    return ended(answer.who);
  }

  const std::shared_ptr<RedisStore> store_;
  const std::string uri_;
};

}  // namespace

Result<std::shared_ptr<SharedWriters>> open_redis_shared(const Uri& uri,
                                                         const OpenOptions& options) {
  auto redis = read_redis_options(uri);
  if (!redis) return redis.error();
  auto store = RedisStore::open_shared(redis.value(), options);
  if (!store) return store.error();
  return std::shared_ptr<SharedWriters>(
      std::make_shared<RedisWriters>(std::move(store).value(), redis->uri));
}

}  // namespace outcore::store
