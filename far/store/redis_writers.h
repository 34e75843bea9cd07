// RedisWriters: opens a store on Redis or Valkey servers for several processes that write it;
// registered as StoreKind::open_shared.
#pragma once

#include <memory>

#include "core/store/uri.h"
#include "outcore/shared_writers.h"

namespace outcore::store {

Result<std::shared_ptr<SharedWriters>> open_redis_shared(const Uri& uri,
                                                         const OpenOptions& options);

}  // namespace outcore::store
