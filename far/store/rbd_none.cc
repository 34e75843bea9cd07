// Used if Ceph's headers were missing when Outcore was built.
#include <cerrno>

#include "far/store/rbd_open.h"

namespace outcore::store {

namespace {

Error refuse(const Uri& uri) {
  return {ENOTSUP,
          "store '" + uri.text + "': this build has no rbd: install librbd-dev and build again"};
}

}  // namespace

Result<std::shared_ptr<Store>> open_rbd(const Uri& uri, const OpenOptions&, unsigned, unsigned) {
  return refuse(uri);
}

Status check_rbd(const Uri&) { return {}; }

Status remove_rbd(const Uri& uri, bool) { return refuse(uri); }

Result<std::vector<StoreInfo>> list_rbd(const Uri& uri) { return refuse(uri); }

}  // namespace outcore::store
