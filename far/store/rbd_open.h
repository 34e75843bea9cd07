// RbdOpen: what the registry knows of rbd:// stores. Compiles without Ceph's headers; the store
// itself needs them (rbd_none.cc takes its place).
#pragma once

#include <memory>

#include "core/store/uri.h"
#include "outcore/store.h"

namespace outcore::store {

// Errors: EINVAL (the URI), ENOTSUP (no Ceph here), and those of RbdStore::open.
Result<std::shared_ptr<Store>> open_rbd(const Uri& uri, const OpenOptions& options,
                                        unsigned read_concurrency, unsigned write_concurrency);

// Removes the image. Errors: as RbdStore::remove.
Status remove_rbd(const Uri& uri);

}  // namespace outcore::store
