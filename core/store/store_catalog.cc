#include "outcore/store_catalog.h"

#include <cerrno>

#include "core/store/registry.h"

namespace outcore {
namespace {

struct Found {
  store::Uri uri;
  const StoreKind* kind = nullptr;
};

// `call`: the function that the kind must have.
template <typename Call>
Result<Found> find(const std::string& text, Call StoreKind::*call) {
  auto uri = store::parse_uri(text);
  if (!uri) return uri.error();
  auto kind = find_store_kind(uri.value());
  if (!kind) return kind.error();
  if (!(kind.value()->*call))
    return Error{ENOTSUP, "store '" + uri.value().text + "': " + uri.value().scheme +
                              " cannot do that: write redis://HOST:PORT/NAME, or use what "
                              "belongs to it (ls, du, rm; rbd)"};
  return Found{std::move(uri.value()), kind.value()};
}

}  // namespace

Result<std::vector<StoreInfo>> list_stores(const std::string& uri) {
  const auto found = find(uri, &StoreKind::list);
  if (!found) return found.error();
  return found.value().kind->list(found.value().uri);
}

Result<uint64_t> stored_bytes(const std::string& uri) {
  const auto found = find(uri, &StoreKind::stored_bytes);
  if (!found) return found.error();
  return found.value().kind->stored_bytes(found.value().uri);
}

Status note_checksum(const std::string& uri, const std::string& checksum) {
  const auto found = find(uri, &StoreKind::note_checksum);
  if (!found) return found.error();
  return found.value().kind->note_checksum(found.value().uri, checksum);
}

Status remove_store(const std::string& uri, bool is_expired_only) {
  const auto found = find(uri, &StoreKind::remove);
  if (!found) return found.error();
  return found.value().kind->remove(found.value().uri, is_expired_only);
}

}  // namespace outcore
