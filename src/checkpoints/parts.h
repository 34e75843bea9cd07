// Parts: what a checkpoint is to hold, looked up and checked: whose engine, which pool, which
// objects.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heap/persistent_core_impl.h"
#include "outcore/checkpoint.h"
#include "runtime/runtime_impl.h"
#include "store/versioned_store.h"

namespace outcore {

struct CheckpointAccess {
  static PersistentCore::Impl* impl(PersistentCore& heap) { return heap.impl_.get(); }
  static Region::Impl* impl(const Region& region) { return region.impl_.get(); }
};

namespace checkpoints {

// A region whose store is not of the pool: copied.
struct Foreign {
  std::string name;
  paging::Space* space = nullptr;
  std::string uri;
};

// A heap that is a part, and the object that it is in.
struct HeapPart {
  PersistentCore::Impl* heap = nullptr;
  std::string object;
  bool is_foreign = false;
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
  std::vector<HeapPart> heaps;
  bool may_wait = true;  // for another cut of the runtime; else EAGAIN
};

// Errors: as checkpoint().
Result<Parts> look_up(const std::string& attempted, std::span<const CheckpointPart> parts,
                      const CheckpointOptions& options);
// The pool of versioned:FOLDER, made if there is none.
Result<std::shared_ptr<versioned::Pool>> pool_named(const std::string& text);

// REQUIRES: parts.runtime; the pool's making() is held; there is no checkpoint of that name; no
// region of the parts ends.
Result<CheckpointReport> make(const std::string& name, Parts& parts,
                              const CheckpointOptions& options);

}  // namespace checkpoints
}  // namespace outcore
