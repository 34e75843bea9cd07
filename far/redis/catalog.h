// Catalog: the stores that a set of servers contains: their sizes, the space booked for them, and
// who may write each.
//
// The whole catalog is in one slot and is changed by one script. So two processes that open the
// same name cannot both become its writer, and two cannot book the same space. Times are those of
// the server. Any thread but the fault path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "far/redis/record.h"
#include "far/redis/servers.h"

namespace outcore::redis {

// What a process asks for when it opens a store.
struct Claim {
  std::string name;
  bool is_writer = false, may_create = false;
  // Of a writer that removes the store: from now on nobody else can open it. is_expired_only:
  // ENOENT unless the store's lifetime is over.
  bool is_removal = false, is_expired_only = false;
  bool is_rewritten = false;    // of a writer that begins with begin_rewrite()
  uint64_t size_bytes = 0;      // 0: the store's own
  std::string owner_id, owner;  // set by set_owner()
  // Of a writer that shares its lease with other members; empty: it wants the lease alone.
  std::string member;
  // From here on: of a store that is created.
  std::string new_id;
  uint64_t chunk_bytes = 0;
  std::string packing;  // empty: none
  uint32_t part_count = 0;
  uint32_t replicas = 0;
  int64_t lifetime_ms = -1;     // -1: the store's own; of a new store for ever
  int64_t capacity_bytes = -1;  // of all servers, for booking; -1: unknown

  // Makes this process the owner. Each call makes another owner.
  void set_owner();
  void set_member();  // the same, as one of several members
};

inline constexpr uint64_t kLeaseMs = 15'000;
inline constexpr const char* kCatalogSet = "oc:{catalog}";  // of the stores' names

// Explains to people what a server or a script refused.
Error explain_refusal(const std::string& attempted, const std::string& refusal);
// The 20 random bits that go below a new token.
uint32_t chance_of_fence();

// How much memory servers take for a store whose chunks are all written. So much is booked for it.
// The script of the catalog computes the same.
uint64_t needed_bytes(uint64_t size_bytes, uint64_t chunk_bytes, uint32_t part_count);
// The size of the largest store that fits into so much memory.
uint64_t bookable_bytes(uint64_t room_bytes, uint64_t chunk_bytes, uint32_t part_count);

class Catalog {
 public:
  Catalog(Servers& servers, uint32_t replicas, uint64_t timeout_ns)
      : servers_(servers), replicas_(replicas), timeout_ns_(timeout_ns) {}

  // Opens a store. A member joins those that share the lease already, and continues with
  // SharedLease. Errors: ENOENT, EBUSY (another process writes it; the message says which, and for
  // how long), EFBIG (it is shorter and may not grow), ENOSPC (the memory is booked by others),
  // ENOTSUP (a member, but the chunks are packed), EUCLEAN (incomplete), ETIMEDOUT, EACCES.
  Result<Record> open(const Claim& claim);
  // Extends the lease to kLeaseMs from now. ESTALE in `code`: another process has it.
  Status renew(const std::string& name, uint64_t token);
  Status mark_ready(const std::string& name, uint64_t token);
  // Ends the lease. The store is kept for lifetime_ms from now on; -1: for its earlier lifetime.
  Status release(const std::string& name, uint64_t token, int64_t lifetime_ms = -1);
  Status resize(const std::string& name, uint64_t token, uint64_t size_bytes,
                int64_t capacity_bytes);
  // From now on the store is incomplete: until note_checksum(), or the next lease of a writer that
  // may open it, nobody else can open it but whoever rewrites or removes it.
  Status begin_rewrite(const std::string& name, uint64_t token);
  Status note_checksum(const std::string& name, uint64_t token, const std::string& checksum);
  Status drop(const std::string& name, uint64_t token);
  // All stores, those with damaged records included: see Record::damage.
  Result<std::vector<Record>> list();

  // How many bytes the masters may hold together; -1: some have no limit. EINVAL: one of them would
  // evict values to make room.
  Result<int64_t> capacity_bytes();

 private:
  Result<Value> run(const std::string& attempted, const std::string& verb, const std::string& name,
                    std::vector<std::string> arguments, bool is_change = true);

  Servers& servers_;
  const uint32_t replicas_;
  const uint64_t timeout_ns_;
};

}  // namespace outcore::redis
