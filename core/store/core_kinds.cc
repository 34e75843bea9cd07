#include "core/store/core_kinds.h"

#include "core/store/file_store.h"
#include "core/store/memory_store.h"
#include "core/store/registry.h"
#include "core/store/scratch_store.h"
#include "core/store/sparse_store.h"
#include "core/store/uri.h"

namespace outcore::store {
namespace {

using Opened = Result<std::shared_ptr<Store>>;

Status check_file(const Uri& uri) {
  if (uri.path.empty()) return refuse(uri, "no path: write " + uri.scheme + ":PATH");
  return direct_mode_of(uri).status();
}

Opened open_file(const Uri& uri, const OpenOptions& options, const StoreLimits& limits) {
  if (Status s = check_file(uri); !s) return s.error();
  return FileStore::open({uri.path, uri.text, options, direct_mode_of(uri).value(),
                          limits.read_concurrency, limits.write_concurrency, true});
}

// Its pages are copied into a budget, so how the memory might be mapped has no meaning; but one URI
// serves a program's regions and its arrays.
Status check_pmem(const Uri& uri) {
  if (const auto map_sync = is_on(uri, "map_sync", true); !map_sync) return map_sync.error();
  return check_file(uri);
}

Opened open_pmem(const Uri& uri, const OpenOptions& options, const StoreLimits& limits) {
  if (Status s = check_pmem(uri); !s) return s.error();
  return open_file(uri, options, limits);
}

Status check_sparse(const Uri& uri) {
  if (uri.path.empty()) return refuse(uri, "no folder: write sparse:FOLDER");
  const auto segment_bytes = uri.bytes_of("segment", 0);
  if (!segment_bytes) return segment_bytes.error();
  if (uri.find("segment") == nullptr) return {};
  return check_metadata({0, segment_bytes.value()}, "store '" + uri.text + "'");
}

Opened open_sparse(const Uri& uri, const OpenOptions& options, const StoreLimits& limits) {
  if (Status s = check_sparse(uri); !s) return s.error();
  return SparseStore::open({uri.path, uri.text, options, uri.bytes_of("segment", 0).value(),
                            limits.read_concurrency, limits.write_concurrency});
}

Status check_scratch(const Uri& uri) { return is_yes(uri, "reserve", true).status(); }

Opened open_scratch(const Uri& uri, const OpenOptions& options, const StoreLimits& limits) {
  const auto is_reserved = is_yes(uri, "reserve", true);
  if (!is_reserved) return is_reserved.error();
  return ScratchStore::open({uri.path.empty() ? options.scratch_dir : uri.path, options.size_bytes,
                             limits.read_concurrency, limits.write_concurrency,
                             is_reserved.value()});
}

Status check_memory(const Uri& uri) {
  return uri.path.empty() ? Status() : refuse(uri, "memory has no name: write memory:");
}

Opened open_memory(const Uri& uri, const OpenOptions& options, const StoreLimits& limits) {
  if (Status s = check_memory(uri); !s) return s.error();
  return MemoryStore::open({options.size_bytes, limits.read_concurrency, limits.write_concurrency});
}

}  // namespace

void add_core_kinds() {
  StoreKind file;
  file.scheme = "file";
  file.syntax = "PATH or file:PATH?direct=auto|on|off";
  file.summary = "a file or block device";
  file.parameters = {"direct"};
  file.open = open_file;
  file.check = check_file;
  file.place = StoreKind::Place::kFile;
  add_kind(file);

  StoreKind pmem = file;
  pmem.scheme = "pmem";
  pmem.syntax = "pmem:PATH?direct=auto|on|off&map_sync=on|off";
  pmem.summary = "a file; for named arrays on a DAX mount the persistent memory itself";
  pmem.parameters = {"direct", "map_sync"};
  pmem.open = open_pmem;
  pmem.check = check_pmem;
  pmem.is_persistent_memory = true;
  add_kind(pmem);

  StoreKind sparse;
  sparse.scheme = "sparse";
  sparse.syntax = "sparse:FOLDER?segment=64M";
  sparse.summary = "segment files, made on first write";
  sparse.parameters = {"segment"};
  sparse.open = open_sparse;
  sparse.check = check_sparse;
  sparse.place = StoreKind::Place::kFolder;
  add_kind(sparse);

  StoreKind scratch;
  scratch.scheme = "scratch";
  scratch.syntax = "scratch:[FOLDER]?reserve=yes|no";
  scratch.summary = "unnamed space that dies with the process";
  scratch.parameters = {"reserve"};
  scratch.open = open_scratch;
  scratch.check = check_scratch;
  scratch.dies_with_process = true;
  scratch.place = StoreKind::Place::kFolder;
  add_kind(scratch);

  StoreKind memory;
  memory.scheme = "memory";
  memory.syntax = "memory:";
  memory.summary = "memory outside of the budget, for tests";
  memory.open = open_memory;
  memory.check = check_memory;
  memory.dies_with_process = true;
  add_kind(memory);
}

}  // namespace outcore::store
