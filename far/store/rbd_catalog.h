// RbdCatalog: the images of a Ceph pool: which there are, and how those whose lifetime is over are
// removed. Any thread but the fault path.
#pragma once

#include <vector>

#include "far/store/rbd_store.h"
#include "outcore/store_catalog.h"

namespace outcore::store {

// Lists images by name; an image or snapshot in the options is ignored. The namespace comes before
// the name: "NAMESPACE/IMAGE". Errors: those of RbdConnection::open.
Result<std::vector<StoreInfo>> list_images(const RbdStoreOptions& options);
// Removes the image of the options. Errors: those of RbdConnection::open, ENOENT (no such image, or
// its lifetime is not over), EBUSY (a process has it open), ENOTEMPTY (it has snapshots).
Status give_back_image(const RbdStoreOptions& options);

}  // namespace outcore::store
