// Catalog: the stores that a set of servers keeps: their sizes, the space booked for them, and who
// may write each.
//
// All of it is in one slot, changed by one script, so that two who open the same name cannot both
// become its writer, nor two maps book the last space. Times are those of the server. Any thread
// but the fault path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "redis/servers.h"

namespace outcore::redis {

struct Record {
  std::string name, id;
  uint64_t size_bytes = 0, chunk_bytes = 0, booked_bytes = 0;
  uint32_t part_count = 0, replicas = 0;
  uint64_t token = 0;
  // The token, and 20 bits of chance below it: two writers differ also if a server that took over
  // had lost the last change of the catalog. Those that share a lease have the same. Of a writer's
  // open() alone.
  uint64_t fence_token = 0;
  std::string owner;         // who writes it, for people; empty: nobody
  int64_t lease_ms = 0;      // until the owner's lease ends; negative: it ended
  uint64_t lifetime_ms = 0;  // 0: for ever
  int64_t left_ms = 0;       // until it may be reclaimed, if it has a lifetime
  bool is_new = false;       // its fences are not all there yet
  std::string packing;       // of its chunks, as Packing::text(); empty: none
  std::string checksum;      // as note_checksum() was told; empty: a writer has had it since
  bool is_expired() const { return lifetime_ms != 0 && left_ms <= 0 && lease_ms <= 0; }
};

// What somebody who opens a store asks for.
struct Claim {
  std::string name;
  bool is_writer = false, may_create = false;
  // Of a writer: from now on nobody opens it. If is_expired_only, ENOENT unless its time is over.
  bool is_removal = false, is_expired_only = false;
  uint64_t size_bytes = 0;      // 0: as it is
  std::string owner_id, owner;  // as be_owned() makes them
  // Of a writer that shares its lease with others that say one, too; empty: it wants it alone.
  std::string member;
  // Of a new store.
  std::string new_id;
  uint64_t chunk_bytes = 0;
  std::string packing;  // empty: none
  uint32_t part_count = 0;
  uint32_t replicas = 0;
  int64_t lifetime_ms = -1;     // -1: as it is, or for ever
  int64_t capacity_bytes = -1;  // of all servers, to be booked; -1: nobody knows

  // In the name of this process; another owner at every call.
  void be_owned();
  void be_member();  // the same, of several
};

inline constexpr uint64_t kLeaseMs = 15'000;
inline constexpr const char* kCatalogSet = "oc:{catalog}";  // of the stores' names

// What a server or a script of it refused, for people.
Error explain_refusal(const std::string& attempted, const std::string& refusal);
// Record::fence_token of a token that is new: its 20 bits of chance.
uint32_t chance_of_fence();
uint64_t fence_token_of(uint64_t token, uint64_t chance);

// The size of the largest store for which so much space suffices.
uint64_t bookable_bytes(uint64_t room_bytes);

class Catalog {
 public:
  Catalog(Servers& servers, uint32_t replicas, uint64_t timeout_ns)
      : servers_(servers), replicas_(replicas), timeout_ns_(timeout_ns) {}

  // A member joins those that share the lease already; then it is a SharedLease's.
  // Errors: ENOENT, EBUSY (another writes it: who, and for how long), EFBIG (it is shorter and may
  // not grow), ENOSPC (booked by others), ENOTSUP (a member, of packed chunks), ETIMEDOUT, EACCES.
  Result<Record> open(const Claim& claim);
  // The lease for another kLeaseMs. -ESTALE in `code` if another has it.
  Status renew(const std::string& name, uint64_t token);
  Status mark_ready(const std::string& name, uint64_t token);
  Status release(const std::string& name, uint64_t token);
  Status resize(const std::string& name, uint64_t token, uint64_t size_bytes,
                int64_t capacity_bytes);
  Status note_checksum(const std::string& name, uint64_t token, const std::string& checksum);
  Status drop(const std::string& name, uint64_t token);
  Result<std::vector<Record>> list();

  // Bytes that the masters may hold together; -1: some have no limit. EINVAL if one would evict
  // what it holds to make room.
  Result<int64_t> capacity_bytes();

 private:
  Result<Record> run(const std::string& attempted, const std::string& verb, const std::string& name,
                     std::vector<std::string> arguments, bool is_change = true);

  Servers& servers_;
  const uint32_t replicas_;
  const uint64_t timeout_ns_;
};

}  // namespace outcore::redis
