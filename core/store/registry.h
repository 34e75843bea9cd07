// Registry: the kinds of store there are, by scheme. A new store is one file and one line in its
// table.
#pragma once

#include <string_view>
#include <vector>

#include "core/store/shared_writers.h"
#include "core/store/uri.h"
#include "outcore/store.h"
#include "outcore/store_catalog.h"

namespace outcore::store {

// Parameters common to all.
struct CommonParameters {
  unsigned read_concurrency = 0;
  unsigned write_concurrency = 0;
};

struct StoreKind {
  std::string_view scheme;
  std::string_view syntax;  // for `outcore info`
  std::string_view summary;
  std::vector<std::string_view> parameters;  // its own
  Result<std::shared_ptr<Store>> (*open)(const Uri& uri, const OpenOptions& options,
                                         const CommonParameters& common);
  bool has_authority = false;  // SCHEME://HOST/…
  // Of kinds that keep their stores on servers (outcore/store_catalog.h); nullptr: it cannot.
  Result<std::vector<StoreInfo>> (*list)(const Uri& uri) = nullptr;
  Result<uint64_t> (*stored_bytes)(const Uri& uri) = nullptr;
  Status (*note_checksum)(const Uri& uri, const std::string& checksum) = nullptr;
  Status (*remove)(const Uri& uri, bool is_expired_only) = nullptr;
  // Of kinds whose stores several processes may write at once; nullptr: one alone.
  Result<std::shared_ptr<SharedWriters>> (*open_shared)(const Uri& uri,
                                                        const OpenOptions& options) = nullptr;
};

const std::vector<StoreKind>& store_kinds();
// The URI names space that is new whenever it is opened, and dies with the process.
bool dies_with_process(const std::string& uri);
// The kind of the URI, which has what the kind asks for. EINVAL: a scheme, a host or a parameter
// that it does not know.
Result<const StoreKind*> find_kind(const Uri& uri);

}  // namespace outcore::store
