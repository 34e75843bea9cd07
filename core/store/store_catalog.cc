#include "outcore/store_catalog.h"

#include <cerrno>

#include "core/store/registry.h"

namespace outcore {
namespace {

struct Found {
  store::Uri uri;
  const StoreKind* kind = nullptr;
};

std::string what_is(const StoreKind& kind) {
  if (kind.checkpoints == StoreKind::Checkpoints::kInPool)
    return "a pool of checkpoints in a folder";
  if (kind.dies_with_process) return "space that ends with its process";
  if (kind.place == StoreKind::Place::kFolder) return "a store in a folder";
  return kind.place == StoreKind::Place::kFile ? "a file or folder of this machine"
                                               : "a store of the kind " + kind.scheme;
}

// `call`: the function that the kind must have. `instead`: what does it for files.
template <typename Call>
Result<Found> find(const std::string& text, Call StoreKind::*call, const std::string& instead) {
  auto uri = store::parse_uri(text);
  if (!uri) return uri.error();
  auto kind = find_store_kind(uri.value());
  if (!kind) return kind.error();
  if (!(kind.value()->*call))
    return Error{ENOTSUP, "store '" + uri.value().text + "': it is " + what_is(*kind.value()) +
                              ", and this is for stores on servers (redis://, rbd://): " +
                              (kind.value()->checkpoints == StoreKind::Checkpoints::kInPool
                                   ? "use `outcore checkpoint`, or "
                                   : "") +
                              instead};
  return Found{std::move(uri.value()), kind.value()};
}

}  // namespace

Result<std::vector<StoreInfo>> list_stores(const std::string& uri) {
  const auto found = find(uri, &StoreKind::list, "use ls");
  if (!found) return found.error();
  return found.value().kind->list(found.value().uri);
}

Result<uint64_t> stored_bytes(const std::string& uri) {
  const auto found = find(uri, &StoreKind::stored_bytes, "use du");
  if (!found) return found.error();
  return found.value().kind->stored_bytes(found.value().uri);
}

Status note_checksum(const std::string& uri, const std::string& checksum) {
  const auto found = find(uri, &StoreKind::note_checksum, "use sha256sum");
  if (!found) return found.error();
  return found.value().kind->note_checksum(found.value().uri, checksum);
}

Status remove_store(const std::string& uri, bool is_expired_only) {
  const auto found = find(uri, &StoreKind::remove, "use rm");
  if (!found) return found.error();
  return found.value().kind->remove(found.value().uri, is_expired_only);
}

}  // namespace outcore
