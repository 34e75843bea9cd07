// StoreKind: what a URI scheme stands for, and what stores of that kind can do apart from holding
// bytes. A program can register its own kinds. They then work wherever a URI is accepted, like the
// built-in ones: in maps, heaps, arrays, checkpoints and Python (examples/09_store_kind.cc).
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

// A parsed store URI: scheme:path?key=value&key=value.
//
// Text without a scheme is the path of a file, taken literally, including '?' and '%'. Parameters
// need a scheme; they begin at the last '?', and only they are percent-decoded. scheme://HOST/path
// has an authority, HOST; scheme:///path and scheme:/path have none.
struct StoreUri {
  std::string text;       // as given, but a password reads ***
  std::string scheme;     // lower case; "file" if there was none
  std::string authority;  // what is between "//" and the path's '/', as it was given
  std::string path;
  std::vector<std::pair<std::string, std::string>> parameters;

  // The value of the parameter; nullptr if it was not given.
  const std::string* find(std::string_view key) const;
  // The value of the parameter, or `otherwise` if it was not given. Errors: EINVAL; the message
  // names the parameter and says which values are valid.
  Result<uint64_t> bytes_of(std::string_view key, uint64_t otherwise) const;
  Result<unsigned> count_of(std::string_view key, unsigned otherwise) const;
  Result<uint64_t> milliseconds_of(std::string_view key, uint64_t otherwise) const;
};

// Parses a URI. Errors: EINVAL (empty text, a parameter without a value or given twice, a bad
// percent escape).
Result<StoreUri> parse_store_uri(const std::string& text);

// The parameters of all kinds: transfers at a time. 0: as many as the store serves well.
struct StoreLimits {
  unsigned read_concurrency = 0;
  unsigned write_concurrency = 0;
};

struct StoreKind {
  // What the path of a URI names: a file that holds the bytes as they are (named arrays then map it
  // themselves), a folder, or nothing on this machine. Opening the store for writing locks it.
  enum class Place : uint8_t { kElsewhere, kFile, kFolder };
  // How checkpoints of its stores are kept.
  enum class Checkpoints : uint8_t {
    kNone,
    kInPool,      // several objects of one pool, a folder of Outcore's format: its kinds alone
    kBySnapshots  // Store::snapshots()
  };

  std::string scheme;                   // lower case, two characters at least
  std::string syntax;                   // for `outcore info`: "tape:DRIVE?speed=N"
  std::string summary;                  // one line for `outcore info`
  std::vector<std::string> parameters;  // its own: others are refused

  // Opens or creates a store. Any thread. REQUIRED.
  std::function<Result<std::shared_ptr<Store>>(const StoreUri& uri, const OpenOptions& options,
                                               const StoreLimits& limits)>
      open;

  // What is wrong with the text of the URI: its path, and the values of its own parameters. It
  // looks at nothing else. Empty: open() finds it. Errors: EINVAL.
  std::function<Status(const StoreUri& uri)> check;

  bool has_authority = false;         // SCHEME://HOST/…
  bool dies_with_process = false;     // unnamed space that is empty each time it is opened
  bool is_persistent_memory = false;  // named arrays write it with processor instructions
  Place place = Place::kElsewhere;
  Checkpoints checkpoints = Checkpoints::kNone;

  // Functions that only some kinds have; empty: this kind does not have it. Any thread; errors as
  // in outcore/store_catalog.h.
  std::function<Result<std::vector<StoreInfo>>(const StoreUri& uri)> list;
  std::function<Result<uint64_t>(const StoreUri& uri)> stored_bytes;
  std::function<Status(const StoreUri& uri, const std::string& checksum)> note_checksum;
  std::function<Status(const StoreUri& uri, bool is_expired_only)> remove;
  // Opens a store that several processes write at the same time (outcore/shared_writers.h).
  std::function<Result<std::shared_ptr<SharedWriters>>(const StoreUri& uri,
                                                       const OpenOptions& options)>
      open_shared;
};

// Registers a kind: URIs with its scheme belong to it until the process ends. Any thread; call it
// before the first use of such a URI. Errors: EINVAL (a scheme of less than two characters, no
// `open`, checkpoints that are kInPool: a kind of one's own has snapshots), EEXIST.
Status register_store_kind(StoreKind kind);

// All kinds, in the order of registration. The pointers stay valid until the process ends.
std::vector<const StoreKind*> store_kinds();

// The kind of the URI, after checking the URI's host, its parameters and their values. Errors:
// EINVAL (unknown scheme, unexpected host, unknown parameter; the message names the nearest valid
// one; a value that cannot be).
Result<const StoreKind*> find_store_kind(const StoreUri& uri);

// The kind that the scheme of the text names, whatever else is wrong with the text; of text without
// a scheme that of files. nullptr: the scheme is unknown. Any thread.
const StoreKind* kind_of_scheme(const std::string& text);

// A URI as people write it: "file:PATH" as PATH, any other as it is.
std::string without_file_scheme(const std::string& uri);

}  // namespace outcore
