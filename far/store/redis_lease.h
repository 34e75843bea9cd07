// RedisLease: this process' right to write a store on servers, alone or as one of several. A thread
// renews it; it is given back when this ends. A forked child does not have it.
//
// Any thread but the fault path, unless a function says otherwise.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <thread>

#include "far/redis/generation.h"
#include "far/redis/shared_lease.h"
#include "far/store/redis_options.h"
#include "far/store/redis_servers.h"

namespace outcore::store {

class RedisLease {
 public:
  // The servers' catalog has given it. `shared`: of one of several writers; else nullptr. REQUIRES:
  // the servers live as long.
  RedisLease(const RedisOptions& options, RedisServers& servers, uint64_t token,
             std::unique_ptr<redis::SharedLease> shared);
  ~RedisLease();
  RedisLease(const RedisLease&) = delete;
  RedisLease& operator=(const RedisLease&) = delete;

  // Starts the thread. Errors: those of the system.
  Status start();
  redis::SharedLease* shared() { return shared_.get(); }
  // Fault path. False: this is a forked child.
  bool is_of_this_process() const { return process_ == redis::generation(); }
  // Fault path. 0, or ESTALE: it has ended.
  int error() const { return error_.load(); }
  // It is not renewed any more, and ends for all members.
  void end() { error_.store(ESTALE); }
  // Gives it back now. REQUIRES: it is shared.
  void leave();
  // Gives it back; the store is kept for a moment only. The thread is not waited for.
  void expire_soon();
  // The destructor removes the store, too, as far as its servers answer soon.
  void remove_at_end() { is_removed_at_end_ = true; }

 private:
  void keep();
  void end_keeper();

  const RedisOptions options_;
  RedisServers& servers_;
  const uint64_t token_;
  const std::unique_ptr<redis::SharedLease> shared_;
  const uint32_t process_ = redis::generation();
  bool is_removed_at_end_ = false;
  std::thread keeper_;  // renews the lease
  std::atomic<uint32_t> is_closing_{0};
  std::atomic<int> error_{0};
};

}  // namespace outcore::store
