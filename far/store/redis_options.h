// RedisOptions: what a redis:// URI asks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/packing/packer.h"
#include "core/store/uri.h"
#include "far/redis/address.h"
#include "far/redis/tls.h"

namespace outcore::store {

struct RedisOptions {
  std::string uri;  // without the password
  std::string name;
  std::vector<redis::Address> servers;
  bool has_standby =
      false;  // two servers: the second is the first one's replica, and takes its place
  std::string user, password;
  bool is_tls = false;
  redis::TlsFiles tls_files;
  unsigned replicas = 1;
  bool is_strict = false;    // replicas=N!: nothing is written without them
  uint64_t chunk_bytes = 0;  // of a new store; 0: kRedisChunkBytes, or kPackedChunkBytes
  std::optional<packing::Packing> packing;  // empty: as the store was created, or not packed
  uint64_t timeout_ms = 0;
  int64_t lifetime_ms = -1;  // -1: the store's own; of a new store for ever
  unsigned lines = 4;        // for reads, to each server
};

inline constexpr uint64_t kRedisChunkBytes = 64 << 10;
inline constexpr uint64_t kPackedChunkBytes = 16 << 10;  // a fill reads a whole one

// Whether the names of hosts are looked up, or only read: then there are no servers.
enum class HostNames : uint8_t { kLookedUp, kAsTheyAre };

// The URI names one store, on the servers of one cluster or on one server. Errors: EINVAL,
// EHOSTUNREACH (an unknown host).
Result<RedisOptions> read_redis_options(const Uri& uri, HostNames names = HostNames::kLookedUp);
// What is wrong with the text of such a URI. Errors: EINVAL.
Status check_redis(const Uri& uri);

}  // namespace outcore::store
