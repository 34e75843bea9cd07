#include "far/store/redis_lease.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/wait.h"
#include "far/redis/catalog.h"

namespace outcore::store {

RedisLease::RedisLease(const RedisOptions& options, RedisServers& servers, bool is_shared)
    : options_(options), servers_(servers), is_shared_(is_shared) {}

void RedisLease::take(uint64_t token) {
  OC_CHECK(token != 0 && token_ == 0);
  token_ = token;
}

void RedisLease::join(std::unique_ptr<redis::SharedLease> shared) {
  OC_CHECK(is_shared_ && shared_ == nullptr && !keeper_.joinable());
  shared_ = std::move(shared);
}

Status RedisLease::start() {
  try {
    keeper_ = std::thread([this] { keep(); });
  } catch (const std::system_error& e) {
    return base::system_error(e.code().value(), "start a thread for the lease of " + options_.uri);
  }
  return {};
}

// A lease is valid as long as it is renewed. If its owner is stopped for longer than that, and
// another process has taken over, the owner's token is refused.
void RedisLease::keep() {
  constexpr uint64_t kRenewalNs = redis::kLeaseMs * 1'000'000 / 3;
  // Tries more than once within a lease, and does not delay a process that closes.
  const uint64_t timeout_ns = std::min<uint64_t>(options_.timeout_ms * 1'000'000, kRenewalNs);
  redis::Catalog impatient(*servers_.servers, options_.replicas, timeout_ns);
  while (is_closing_.load(std::memory_order_acquire) == 0) {
    os::wait(&is_closing_, 0, kRenewalNs);
    if (is_closing_.load(std::memory_order_acquire) != 0) return;
    if (shared_ != nullptr && error_.load() != 0) return;
    try {
      const Status renewed =
          shared_ == nullptr ? impatient.renew(options_.name, token_) : shared_->renew(timeout_ns);
      if (renewed.code() != ESTALE) continue;
    } catch (const std::bad_alloc&) {  // the next time, as if the server had not answered
      continue;
    }
    error_.store(ESTALE);
    return;
  }
}

void RedisLease::end_keeper() {
  is_closing_.store(1, std::memory_order_release);
  os::wake_all(&is_closing_);
  if (keeper_.joinable()) keeper_.join();
}

void RedisLease::leave() {
  OC_CHECK(shared_ != nullptr);
  if (process_ != redis::generation()) return;
  const os::SignalBlock block;
  end_keeper();
  if (error_.exchange(ESTALE) == 0) static_cast<void>(shared_->leave());
}

// The thread that renews is not waited for, because it may be waiting for servers.
void RedisLease::expire_soon() {
  if (process_ != redis::generation() || error_.load() != 0) return;
  const os::SignalBlock block;
  is_closing_.store(1, std::memory_order_release);
  os::wake_all(&is_closing_);
  static_cast<void>(servers_.catalog->release(options_.name, token_, RedisServers::kRetiredMs));
}

RedisLease::~RedisLease() {
  if (process_ != redis::generation()) {       // the thread and the lease are the parent's
    if (keeper_.joinable()) keeper_.detach();  // banned-ok: it does not exist in this process
    return;
  }
  end_keeper();
  if (shared_ != nullptr) {
    leave();
    return;
  }
  if (token_ != 0 && !is_shared_ && error_.load() == 0) {
    const os::SignalBlock block;
    const Status released = servers_.catalog->release(options_.name, token_);
    if (!is_removed_at_end_ || !released) return;
    RedisOptions hasty = options_;
    hasty.timeout_ms = std::min<uint64_t>(hasty.timeout_ms, 2000);
    servers_.servers->set_check(nullptr);              // what is removed lacks what was written
    static_cast<void>(servers_.remove(hasty, false));  // otherwise its lifetime ends soon
  }
}

}  // namespace outcore::store
