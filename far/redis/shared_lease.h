// SharedLease: one member's part of a lease that several writers of a store share.
//
// All have one token, and so one fence token: the servers take what any of them writes, in any
// order, each write in one step. What they must not do at once they do under locks, which lie in
// the store's record in the catalog, as do the members and how long each is sure to live. A lock
// never goes from a member that may still write to another: if one that has a lock is silent for
// longer than its lease, whoever wants the lock makes the token a larger one, and nobody of them
// writes any more. Each call renews the member's lease. Any thread but the fault path; each
// lock one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "far/redis/catalog.h"

namespace outcore::redis {

class SharedLease {
 public:
  enum class State : char { kOpen = 'o', kWriting = 'w', kClosing = 'c' };
  enum class Outcome : uint8_t {
    kDone,
    kBusy,    // `who` has it
    kBroken,  // `who` ended or is silent: `fence_token` is that of the fences that are to be taken
  };
  struct Answer {
    Outcome outcome = Outcome::kDone;
    std::string who;  // for people
    uint64_t size_bytes = 0, fence_token = 0;
    // Of others(): those that write or close and whose lease runs; those of them that write and
    // have not been heard since; those whose lease has ended (one is `who`). The server's time, ms.
    unsigned alive = 0, unheard = 0, dead = 0;
    uint64_t now_ms = 0;
  };

  // Of a Claim that was be_member()'s and of its record.
  SharedLease(Servers& servers, uint32_t replicas, uint64_t timeout_ns, const Claim& claim,
              const Record& record)
      : servers_(servers),
        replicas_(replicas),
        timeout_ns_(timeout_ns),
        name_(claim.name),
        member_(claim.member),
        token_(record.token) {}

  // The lock that has turns; of any other what a server reads late may stay locked until its member
  // leaves.
  static constexpr const char* kCatalogLock = "catalog";

  // Errors of all: ESTALE (this is no member any more), ETIMEDOUT, EACCES.
  Status renew(uint64_t timeout_ns);
  Status be(State state);
  // `size_bytes` is the store's as it is now. What is had already is had.
  Result<Answer> lock(const std::string& what);
  Status unlock(const std::string& what);
  // Breaks the lease if those that write are dead, and may_break.
  Result<Answer> others(uint64_t since_ms, bool may_break);
  // With all its locks.
  Status leave();

  const std::string& member() const { return member_; }

 private:
  Result<Answer> ask(const std::string& attempted, const std::string& verb,
                     std::vector<std::string> arguments, uint64_t timeout_ns);

  Servers& servers_;
  const uint32_t replicas_;
  const uint64_t timeout_ns_;
  const std::string name_, member_;
  const uint64_t token_;
  // Of the catalog's lock: what is asked for in a turn that has ended comes too late.
  std::atomic<uint64_t> turn_{0};
};

}  // namespace outcore::redis
