// RedisServers: the servers that a redis:// URI names, and the stores on them.
#pragma once

#include <memory>
#include <vector>

#include "far/redis/catalog.h"
#include "far/redis/servers.h"
#include "far/store/redis_options.h"

namespace outcore::store {

struct RedisServers {
  // How long a store is kept that its process, which ends, has given back.
  static constexpr uint64_t kRetiredMs = 1000;

  // Errors: EACCES (the password), EUSERS (a server takes no more clients), EREMOTEIO (it answers
  // with another error, which the message has), EPROTO (TLS), EINVAL (several servers that are not
  // a cluster), and those of the system.
  static Result<std::unique_ptr<RedisServers>> connect(const RedisOptions& options);

  // Checks that every master has as many replicas as must acknowledge a write. EINVAL names one
  // that has not. Waits for a server that is being replaced.
  Status check_replicas(const RedisOptions& options);
  // How many replicas each server has now. UINT32_MAX: the server has no slots.
  Result<std::vector<uint32_t>> count_replicas(const RedisOptions& options);
  // Removes the store, also from the replicas that exist. EBUSY: its writer has to close it first;
  // readers do not find the store any more. is_expired_only: ENOENT unless its lifetime is over.
  Status remove(const RedisOptions& options, bool is_expired_only);
  // Removes stores whose lifetime is over, because their space is needed for another.
  Status reclaim_expired(const RedisOptions& options);
  // How many bytes the servers hold of it.
  Result<uint64_t> stored_bytes(const RedisOptions& options, const redis::Record& record);

  std::unique_ptr<redis::Tls> tls;
  std::unique_ptr<redis::Servers> servers;
  std::unique_ptr<redis::Catalog> catalog;
};

// "store 'URI': why".
Error refuse_redis(const RedisOptions& options, int code, const std::string& why);

}  // namespace outcore::store
