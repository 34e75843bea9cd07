// RbdOpen: what the registry knows of rbd:// stores. It compiles without Ceph's headers; the store
// itself needs them (without them rbd_none.cc takes its place).
#pragma once

#include <memory>
#include <vector>

#include "core/store/uri.h"
#include "outcore/store.h"
#include "outcore/store_catalog.h"

namespace outcore::store {

// Errors: EINVAL (the URI), ENOTSUP (built without Ceph), and those of RbdStore::open.
Result<std::shared_ptr<Store>> open_rbd(const Uri& uri, const OpenOptions& options,
                                        unsigned read_concurrency, unsigned write_concurrency);

// What is wrong with the values of its parameters; the names are not looked at. Errors: EINVAL.
Status check_rbd(const Uri& uri);

// Removes the image. is_expired_only: ENOENT unless its lifetime is over. Errors: those of
// RbdStore::remove.
Status remove_rbd(const Uri& uri, bool is_expired_only);
// The images of the pool, or of one namespace of it.
Result<std::vector<StoreInfo>> list_rbd(const Uri& uri);

}  // namespace outcore::store
