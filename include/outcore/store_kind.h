// StoreKind: what a scheme of a URI stands for, and what stores of that kind can do beside holding
// bytes. A program adds kinds of its own, which are then known wherever a URI is taken: by maps,
// heaps, arrays, checkpoints and Python, as the built-in ones are (examples/09_store_kind.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outcore/result.h"
#include "outcore/store.h"
#include "outcore/store_catalog.h"

namespace outcore {

class SharedWriters;

// A store's name, taken apart: scheme:path?key=value&key=value.
//
// Text without a scheme is the path of a file, taken as it is, with all its '?' and '%'. Parameters
// need a scheme; they begin at the last '?', and only they are percent-decoded. scheme://HOST/path
// has an authority, HOST; scheme:///path and scheme:/path have none.
struct StoreUri {
  std::string text;       // as it was given, but for a password, which reads ***
  std::string scheme;     // lower case; "file" if there was none
  std::string authority;  // what is between "//" and the path's '/', as it was given
  std::string path;
  std::vector<std::pair<std::string, std::string>> parameters;

  // nullptr if it was not given.
  const std::string* find(std::string_view key) const;
  // The parameter, or `otherwise` where it was not given. Errors: EINVAL, naming the parameter and
  // what would do.
  Result<uint64_t> bytes_of(std::string_view key, uint64_t otherwise) const;
  Result<unsigned> count_of(std::string_view key, unsigned otherwise) const;
  Result<uint64_t> milliseconds_of(std::string_view key, uint64_t otherwise) const;
};

// Errors: EINVAL (empty text, a parameter without value or given twice, a bad percent escape).
Result<StoreUri> parse_store_uri(const std::string& text);

// The parameters that stores of every kind take: transfers at a time. 0: as many as it serves well.
struct StoreLimits {
  unsigned read_concurrency = 0;
  unsigned write_concurrency = 0;
};

struct StoreKind {
  // What the path of its URIs names: a file that holds the bytes as they are (named arrays then map
  // it themselves), a folder, or nothing on this machine. Who opens the store for writing locks it.
  enum class Place : uint8_t { kElsewhere, kFile, kFolder };
  // How what its stores hold at one moment is kept.
  enum class Checkpoints : uint8_t {
    kNone,
    kInPool,      // several objects of one pool, which is a folder
    kBySnapshots  // Store::snapshots()
  };

  std::string scheme;                   // lower case, two characters at least
  std::string syntax;                   // for `outcore info`: "tape:DRIVE?speed=N"
  std::string summary;                  // one line
  std::vector<std::string> parameters;  // its own: others are refused

  // Opens or makes a store. Any thread. REQUIRED.
  std::function<Result<std::shared_ptr<Store>>(const StoreUri& uri, const OpenOptions& options,
                                               const StoreLimits& limits)>
      open;

  bool has_authority = false;         // SCHEME://HOST/…
  bool dies_with_process = false;     // unnamed space that is new whenever it is opened
  bool is_persistent_memory = false;  // named arrays write it by processor instructions
  Place place = Place::kElsewhere;
  Checkpoints checkpoints = Checkpoints::kNone;

  // What only some kinds can do; an empty function: this one cannot. Any thread; errors as in
  // outcore/store_catalog.h.
  std::function<Result<std::vector<StoreInfo>>(const StoreUri& uri)> list;
  std::function<Result<uint64_t>(const StoreUri& uri)> stored_bytes;
  std::function<Status(const StoreUri& uri, const std::string& checksum)> note_checksum;
  std::function<Status(const StoreUri& uri, bool is_expired_only)> remove;
  // A store that several processes write at once (outcore/shared_writers.h).
  std::function<Result<std::shared_ptr<SharedWriters>>(const StoreUri& uri,
                                                       const OpenOptions& options)>
      open_shared;
};

// From now on URIs of its scheme are of this kind, until the process ends. Any thread; before the
// first use of such a URI. Errors: EINVAL (no scheme of two characters or more, no `open`), EEXIST.
Status register_store_kind(StoreKind kind);

// All kinds, in the order in which they were registered; they stay where they are.
std::vector<const StoreKind*> store_kinds();

// The kind of the URI, which has what the kind asks for. Errors: EINVAL (a scheme, a host or a
// parameter that nobody knows, with the nearest that there is).
Result<const StoreKind*> find_store_kind(const StoreUri& uri);

}  // namespace outcore
