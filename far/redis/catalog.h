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

#include "far/redis/record.h"
#include "far/redis/servers.h"

namespace outcore::redis {

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
// Of a token that is new: the 20 bits of chance below it.
uint32_t chance_of_fence();

// What servers take for a store whose chunks are all written, which is what is booked for it. The
// catalog's script computes the same.
uint64_t needed_bytes(uint64_t size_bytes, uint64_t chunk_bytes, uint32_t part_count);
// The size of the largest store for which so much space suffices.
uint64_t bookable_bytes(uint64_t room_bytes, uint64_t chunk_bytes, uint32_t part_count);

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
  // From then on the store is kept for lifetime_ms; -1: for as long as it was said before.
  Status release(const std::string& name, uint64_t token, int64_t lifetime_ms = -1);
  Status resize(const std::string& name, uint64_t token, uint64_t size_bytes,
                int64_t capacity_bytes);
  Status note_checksum(const std::string& name, uint64_t token, const std::string& checksum);
  Status drop(const std::string& name, uint64_t token);
  // Also those whose records are damaged: see Record::damage.
  Result<std::vector<Record>> list();

  // Bytes that the masters may hold together; -1: some have no limit. EINVAL if one would evict
  // what it holds to make room.
  Result<int64_t> capacity_bytes();

 private:
  Result<Value> run(const std::string& attempted, const std::string& verb, const std::string& name,
                    std::vector<std::string> arguments, bool is_change = true);

  Servers& servers_;
  const uint32_t replicas_;
  const uint64_t timeout_ns_;
};

}  // namespace outcore::redis
