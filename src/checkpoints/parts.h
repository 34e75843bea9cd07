// Parts: what a checkpoint is to hold, looked up and checked: whose engine, which pool, which
// objects.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "outcore/checkpoint.h"
#include "runtime/runtime_impl.h"
#include "store/versioned_store.h"

namespace outcore {

struct CheckpointAccess {
  static Region::Impl* impl(const Region& region) { return region.impl_.get(); }
};

namespace checkpoints {

// A region whose store is not of the pool: copied.
struct Foreign {
  std::string name;
  paging::Space* space = nullptr;
  std::string uri;
};

struct Memory {
  std::string name;
  std::span<const std::byte> bytes;
};

struct Parts {
  std::shared_ptr<Runtime::Impl> runtime;  // null: no region
  std::shared_ptr<versioned::Pool> pool;
  std::vector<paging::Space*> spaces;
  std::vector<Foreign> foreign;
  std::vector<Memory> memory;
};

// Errors: as checkpoint().
Result<Parts> look_up(const std::string& attempted, std::span<const CheckpointPart> parts,
                      const CheckpointOptions& options);

}  // namespace checkpoints
}  // namespace outcore
