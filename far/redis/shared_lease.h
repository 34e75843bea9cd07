// SharedLease: the part of one member in a lease that several writers of a store share.
//
// All members have one token, and so one fence token: the servers accept the writes of any of them
// in any order, each write in one step. What members must not do at the same time, they do under
// locks. The locks are in the catalog's record of the store, as are the members and how long the
// lease of each still runs. A lock never passes to another member while its holder may still write:
// if the holder is silent for longer than its lease, the member that wants the lock raises the
// token, and then none of the members can write any more. Each call renews the lease of the member.
// Any thread but the fault path; each lock one thread at a time.
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
    kBusy,    // another member, `who`, has the lock
    kBroken,  // `who` ended or is silent: take the fences with `fence_token`
  };
  struct Answer {
    Outcome outcome = Outcome::kDone;
    std::string who;  // for people
    uint64_t size_bytes = 0, fence_token = 0;
    // Of others(): members that write or close and whose lease runs; those of them that write and
    // were not heard of since; members whose lease has ended (`who` is one). Times are the
    // server's, in ms.
    unsigned alive = 0, unheard = 0, dead = 0;
    uint64_t now_ms = 0;
  };

  // `claim` had set_member() called; `record` is what Catalog::open returned for it.
  SharedLease(Servers& servers, uint32_t replicas, uint64_t timeout_ns, const Claim& claim,
              const Record& record)
      : servers_(servers),
        replicas_(replicas),
        timeout_ns_(timeout_ns),
        name_(claim.name),
        member_(claim.member),
        token_(record.token) {}

  // This lock counts turns, so late requests are recognized. Any other lock may stay locked until
  // its member leaves, if a server reads a request late.
  static constexpr const char* kCatalogLock = "catalog";

  // Errors of all calls: ESTALE (it is no longer a member), ETIMEDOUT, EACCES.
  Status renew(uint64_t timeout_ns);
  Status set_state(State state);
  // Answer::size_bytes is the store's size now. To lock what the member has locked already is no
  // error.
  Result<Answer> lock(const std::string& what);
  Status unlock(const std::string& what);
  // Breaks the lease if members that write are dead, and may_break.
  Result<Answer> others(uint64_t since_ms, bool may_break);
  // Releases all its locks, too.
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
  // Of the catalog's lock: a request of a turn that has ended is ignored.
  std::atomic<uint64_t> turn_{0};
};

}  // namespace outcore::redis
