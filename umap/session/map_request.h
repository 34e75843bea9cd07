// MapRequest: the arguments of one umap(), and what is wrong with them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "outcore/result.h"
#include "outcore/store.h"
#include "outcore/umap_store.h"

namespace outcore::umapped {

struct MapRequest {
  std::byte* address = nullptr;
  uint64_t size_bytes = 0;
  int protection = 0;
  int flags = 0;
  int fd = -1;
  off_t offset = 0;
  Umap::Store* store = nullptr;
  uint64_t page_bytes = 0;  // never 0 where a request is checked or opened

  bool is_fixed() const;
  bool is_writable() const;
  uint64_t end_bytes() const { return static_cast<uint64_t>(offset) + size_bytes; }

  // EINVAL, with the argument that is wrong. The descriptor is looked at by open().
  Status check() const;
  // The store of the region: the file's, or what does the work for the program's. REQUIRES: check()
  // is ok. Errors: those of open_descriptor; EACCES (a store for reading alone); the errno with
  // which a SparseStore was opened.
  Result<std::shared_ptr<Store>> open() const;
};

}  // namespace outcore::umapped
