// RedisServers: the servers that a redis:// URI names, and the stores on them.
#pragma once

#include <memory>
#include <vector>

#include "far/redis/catalog.h"
#include "far/redis/servers.h"
#include "far/store/redis_options.h"

namespace outcore::store {

struct RedisServers {
  // Errors: EACCES (a password), EPROTO (TLS), EINVAL (several that are no cluster), and what the
  // system said.
  static Result<std::unique_ptr<RedisServers>> connect(const RedisOptions& options);

  // Every master has the replicas that are to acknowledge what is written. EINVAL: which has not.
  // A server that is being replaced is waited for.
  Status check_replicas(const RedisOptions& options);
  // How many replicas each server has now. UINT32_MAX: one that has no slots.
  Result<std::vector<uint32_t>> count_replicas(const RedisOptions& options);
  // The store goes, as far as replicas are there also from them: its writer first has to let go of
  // it (EBUSY), readers find nothing any more. If is_expired_only, ENOENT unless its time is over.
  Status remove(const RedisOptions& options, bool is_expired_only);
  // Bytes that the servers hold of it.
  Result<uint64_t> stored_bytes(const RedisOptions& options, const redis::Record& record);

  std::unique_ptr<redis::Tls> tls;
  std::unique_ptr<redis::Servers> servers;
  std::unique_ptr<redis::Catalog> catalog;
};

// "store 'URI': why".
Error refuse_redis(const RedisOptions& options, int code, const std::string& why);

}  // namespace outcore::store
