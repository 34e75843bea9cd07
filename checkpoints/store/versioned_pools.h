// VersionedPools: the pools that this process writes, each open once, however many of its objects
// are stores. Any thread but the fault path.
#pragma once

#include <memory>
#include <string>

#include "checkpoints/pool/pool.h"
#include "core/store/direct_file.h"

namespace outcore::store {

struct VersionedPoolOptions {
  std::string folder;
  bool may_create = false;
  uint32_t chunk_bytes = 0;  // 0: as it is
  DirectMode direct = DirectMode::kAuto;
  unsigned read_concurrency = 0, write_concurrency = 0;  // of who opens it first
};

// The pool of the folder, opened to write. It ends, with a commit, when nobody has it any more.
// Errors: those of versioned::Pool::open.
Result<std::shared_ptr<versioned::Pool>> open_versioned_pool(const VersionedPoolOptions& options);

}  // namespace outcore::store
