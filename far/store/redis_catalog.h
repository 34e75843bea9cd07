// RedisCatalog: the functions of outcore/store_catalog.h for redis:// stores, as the registry needs
// them.
#pragma once

#include <vector>

#include "core/store/uri.h"
#include "outcore/store_catalog.h"

namespace outcore::store {

Result<std::vector<StoreInfo>> list_redis(const Uri& uri);
Result<uint64_t> stored_in_redis(const Uri& uri);
// REQUIRES: the caller writes the store.
Status note_checksum_in_redis(const Uri& uri, const std::string& checksum);
Status remove_from_redis(const Uri& uri, bool is_expired_only);

}  // namespace outcore::store
