// RedisWriters: several processes that write one store of Redis or Valkey servers, for the
// registry.
#pragma once

#include <memory>

#include "core/store/uri.h"
#include "outcore/shared_writers.h"

namespace outcore::store {

Result<std::shared_ptr<SharedWriters>> open_redis_shared(const Uri& uri,
                                                         const OpenOptions& options);

}  // namespace outcore::store
