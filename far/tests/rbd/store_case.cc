// The kinds of rbd:// stores that the conformance suite of core/tests/store is run on here.
#include "core/tests/store/store_case.h"

#include "far/tests/rbd/ceph.h"

namespace outcore::store_test {
namespace {

using rbd_test::Ceph;

StoreCase with(const std::string& name, const std::string& parameters) {
  return {name, [parameters](const Folder&, uint64_t size_bytes) {
            OpenOptions options;
            options.is_writable = options.may_create = true;
            options.size_bytes = size_bytes;
            return open_store(Ceph::instance().uri(Ceph::new_name(), parameters), options);
          }};
}

Result<std::shared_ptr<Store>> make_by_uri_alone(const Folder&, uint64_t size_bytes) {
  const Ceph& ceph = Ceph::instance();
  OpenOptions options;
  options.is_writable = options.may_create = true;
  options.size_bytes = size_bytes;
  return open_store("rbd://data/" + Ceph::new_name() + "?mon=" + ceph.monitor() +
                        "&keyring=" + ceph.keyring() + "&id=tenant&order=12&timeout=20",
                    options);
}

}  // namespace

std::vector<StoreCase> all_cases() {
  if (!Ceph::why_not().empty()) return {};
  return {with("Rbd", ""), with("RbdThick", "&thick=yes"),
          StoreCase{"RbdOfSmallObjectsByUriAlone", make_by_uri_alone}};
}

}  // namespace outcore::store_test
