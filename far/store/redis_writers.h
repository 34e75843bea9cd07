// RedisWriters: several processes that write one store on Redis or Valkey servers, as the registry
// needs it.
#pragma once

#include <memory>

#include "core/store/uri.h"
#include "outcore/shared_writers.h"

namespace outcore::store {

Result<std::shared_ptr<SharedWriters>> open_redis_shared(const Uri& uri,
                                                         const OpenOptions& options);

}  // namespace outcore::store
