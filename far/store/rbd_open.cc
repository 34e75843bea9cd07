#include "far/store/rbd_open.h"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "far/store/rbd_catalog.h"
#include "far/store/rbd_store.h"

namespace outcore::store {
namespace {

constexpr unsigned kTimeoutMax = 3600;
constexpr uint64_t kLifetimeMsMin = 60'000, kLifetimeMsMax = uint64_t{3650} * 86'400'000;
constexpr unsigned kOrderMin = 12, kOrderMax = 25;  // the limits of librbd

// Parses /image or /namespace/image, either with @snapshot.
Status take_names(const Uri& uri, RbdStoreOptions& into) {
  into.pool = uri.authority;
  std::string path = uri.path.substr(std::min<size_t>(1, uri.path.size()));
  if (const size_t at = path.rfind('@'); at != std::string::npos) {
    into.snapshot = path.substr(at + 1);
    path.resize(at);
    if (into.snapshot.empty()) return refuse(uri, "no snapshot after '@': write its name");
  }
  if (const size_t slash = path.find('/'); slash != std::string::npos) {
    into.name_space = path.substr(0, slash);
    path.erase(0, slash + 1);
    if (into.name_space.empty()) path.clear();
  }
  into.image = path;
  if (into.pool.empty() || path.empty() || path.find('/') != std::string::npos)
    return refuse(uri, "no pool or image: write rbd://POOL/IMAGE or rbd://POOL/NAMESPACE/IMAGE");
  return {};
}

Status take_timeout(const Uri& uri, unsigned& into) {
  const std::string* value = uri.find("timeout");
  if (value == nullptr) return {};
  const char* const end = value->data() + value->size();
  const auto [stopped, error] = std::from_chars(value->data(), end, into);
  const bool has_unit = stopped != end && *stopped == 's' && stopped + 1 == end;
  if (error == std::errc() && (stopped == end || has_unit) && into >= 1 && into <= kTimeoutMax)
    return {};
  return refuse(uri, "timeout=" + *value + " is not a time: write seconds, 1s to " +
                         std::to_string(kTimeoutMax) + "s");
}

Status take_order(const Uri& uri, unsigned& into) {
  const std::string* const value = uri.find("order");
  if (value == nullptr) return {};
  const char* const end = value->data() + value->size();
  const auto [stopped, error] = std::from_chars(value->data(), end, into);
  if (error == std::errc() && stopped == end && into >= kOrderMin && into <= kOrderMax) return {};
  return refuse(uri, "order=" + *value + " is not possible: write " + std::to_string(kOrderMin) +
                         " (objects of 4 KiB) to " + std::to_string(kOrderMax) + " (32 MiB)");
}

void take_text(const Uri& uri, const char* key, std::string& into) {
  if (const std::string* value = uri.find(key)) into = *value;
}

Status take_lifetime(const Uri& uri, RbdStoreOptions& into) {
  const std::string* const value = uri.find("lifetime");
  if (value == nullptr) return {};
  const auto lifetime = uri.milliseconds_of("lifetime", 0);
  if (!lifetime) return lifetime.error();
  if (lifetime.value() != 0 &&
      (lifetime.value() < kLifetimeMsMin || lifetime.value() > kLifetimeMsMax))
    return refuse(uri,
                  "lifetime=" + *value + " is not possible: write 1min … 3650d, or 0 for ever");
  into.lifetime_ms = static_cast<int64_t>(lifetime.value());
  return {};
}

// All but the names.
Result<RbdStoreOptions> read_values(const Uri& uri) {
  RbdStoreOptions rbd;
  rbd.uri = uri.text;
  if (Status s = take_timeout(uri, rbd.access.timeout_s); !s) return s.error();
  if (Status s = take_order(uri, rbd.order); !s) return s.error();
  take_text(uri, "conf", rbd.access.conf);
  take_text(uri, "mon", rbd.access.mon);
  take_text(uri, "keyring", rbd.access.keyring);
  take_text(uri, "keyfile", rbd.access.keyfile);
  take_text(uri, "id", rbd.access.id);
  for (const char* key : {"conf", "mon", "keyring", "keyfile", "id", "timeout"})
    if (const std::string* value = uri.find(key))
      rbd.parameters +=
          (rbd.parameters.empty() ? "" : "&") + std::string(key) + "=" + encode_percents(*value);
  const auto is_interrupted = is_yes(uri, "interrupted", false);
  if (!is_interrupted) return is_interrupted.error();
  rbd.is_interrupted = is_interrupted.value();
  const auto is_thick = is_yes(uri, "thick", false);
  if (!is_thick) return is_thick.error();
  rbd.is_thick = is_thick.value();
  const auto size = uri.bytes_of("size", 0);
  if (!size) return size.error();
  rbd.open.size_bytes = size.value();
  if (Status s = take_lifetime(uri, rbd); !s) return s.error();
  return rbd;
}

Result<RbdStoreOptions> read_options(const Uri& uri) {
  auto rbd = read_values(uri);
  if (rbd)
    if (Status s = take_names(uri, rbd.value()); !s) return s.error();
  return rbd;
}

}  // namespace

Status check_rbd(const Uri& uri) { return read_values(uri).status(); }

Result<std::shared_ptr<Store>> open_rbd(const Uri& uri, const OpenOptions& options,
                                        unsigned read_concurrency, unsigned write_concurrency) {
  auto read = read_options(uri);
  if (!read) return read.error();
  RbdStoreOptions rbd = std::move(read).value();
  const uint64_t size_bytes = rbd.open.size_bytes;  // of the URI
  rbd.open = options;
  rbd.read_concurrency = read_concurrency;
  rbd.write_concurrency = write_concurrency;
  rbd.open.size_bytes = std::max(options.size_bytes, size_bytes);
  // A size in the URI of a store that is written means that it may be created.
  if (size_bytes != 0 && options.is_writable) rbd.open.may_create = true;
  return RbdStore::open(rbd);
}

Status remove_rbd(const Uri& uri, bool is_expired_only) {
  const auto options = read_options(uri);
  if (!options) return options.status();
  return is_expired_only ? give_back_image(options.value()) : RbdStore::remove(options.value());
}

Result<std::vector<StoreInfo>> list_rbd(const Uri& uri) {
  Uri any = uri;  // the name of an image is ignored, a namespace is not
  if (any.path.size() <= 1 || any.path.ends_with("/")) any.path += any.path.empty() ? "/-" : "-";
  const auto options = read_options(any);
  if (!options) return options.error();
  return list_images(options.value());
}

}  // namespace outcore::store
