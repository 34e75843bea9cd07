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
  // One that is not taken yet. Made before the servers' catalog is asked for it, so that nothing
  // can fail between the grant and its owner. REQUIRES: the servers live as long.
  RedisLease(const RedisOptions& options, RedisServers& servers, bool is_shared);
  ~RedisLease();
  RedisLease(const RedisLease&) = delete;
  RedisLease& operator=(const RedisLease&) = delete;

  // The catalog has given it. Allocates nothing. REQUIRES: not 0, which no catalog gives.
  void take(uint64_t token);
  // What a shared lease is given back by; without it that expires. REQUIRES: start() comes later.
  void join(std::unique_ptr<redis::SharedLease> shared);
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
  const bool is_shared_;
  uint64_t token_ = 0;  // 0: it is not taken
  std::unique_ptr<redis::SharedLease> shared_;
  const uint32_t process_ = redis::generation();
  bool is_removed_at_end_ = false;
  std::thread keeper_;  // renews the lease
  std::atomic<uint32_t> is_closing_{0};
  std::atomic<int> error_{0};
};

}  // namespace outcore::store
