// RbdCatalog: the images of a Ceph pool from outside: which there are, and the removal of those
// whose lifetime is over. Any thread but the fault path.
#pragma once

#include <vector>

#include "far/store/rbd_store.h"
#include "outcore/store_catalog.h"

namespace outcore::store {

// By name; images and snapshots in the options are not looked at. Those in a namespace have it
// before their name, "NAMESPACE/IMAGE". Errors: those of RbdConnection::open.
Result<std::vector<StoreInfo>> list_images(const RbdStoreOptions& options);
// Errors: those of RbdConnection::open, ENOENT (none, or its lifetime is not over), EBUSY (somebody
// has it open), ENOTEMPTY (snapshots hold it).
Status give_back_image(const RbdStoreOptions& options);

}  // namespace outcore::store
