// VersionedPools: the pools that this process writes. Each is open once, however many of its
// objects are opened as stores. Any thread but the fault path.
#pragma once

#include <memory>
#include <string>

#include "checkpoints/pool/pool.h"
#include "core/store/direct_file.h"

namespace outcore::store {

struct VersionedPoolOptions {
  std::string folder;
  bool may_create = false;
  uint32_t chunk_bytes = 0;  // 0: the pool's own
  DirectMode direct = DirectMode::kAuto;
  unsigned read_concurrency = 0, write_concurrency = 0;  // those of the first store count
};

// Opens the pool of the folder for writing, or returns the open one. It commits and closes when the
// last owner releases it. Errors: those of versioned::Pool::open.
Result<std::shared_ptr<versioned::Pool>> open_versioned_pool(const VersionedPoolOptions& options);

}  // namespace outcore::store
