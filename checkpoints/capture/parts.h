// Parts: what a checkpoint is to contain, looked up and checked: its runtime, its target, its
// objects.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoints/capture/checkpoint_target.h"
#include "core/paging/cut_member.h"
#include "core/runtime/runtime_impl.h"
#include "outcore/checkpoint.h"

namespace outcore {

struct CheckpointAccess {
  static Region::Impl* impl(const Region& region) { return region.impl_.get(); }
};

namespace checkpoints {

// A region whose store does not belong to the target: it is copied.
struct Foreign {
  std::string name;
  paging::PageCache* cache = nullptr;
  std::string uri;
};

// A heap that is a part, and the object that contains it.
struct HeapPart {
  CutMember* heap = nullptr;
  std::string object;
  bool is_foreign = false;
  paging::PageCache* cache = nullptr;
};

struct Memory {
  std::string name;
  std::span<const std::byte> bytes;
};

struct Parts {
  std::shared_ptr<Runtime::Impl> runtime;  // null: there is no region
  std::shared_ptr<CheckpointTarget> target;
  std::vector<paging::PageCache*> caches;
  std::vector<CheckpointTarget::Member> members;  // the parts that belong to the target
  std::vector<Foreign> foreign;
  std::vector<Memory> memory;
  std::vector<HeapPart> heaps;
  bool may_wait = true;  // wait for another cut of the runtime; otherwise EAGAIN
};

// Errors: as checkpoint().
Result<Parts> look_up(const std::string& attempted, std::span<const CheckpointPart> parts,
                      const CheckpointOptions& options);
// REQUIRES: parts.runtime; the target's making() is locked; there is no checkpoint of that name; no
// region of the parts is unmapped meanwhile.
Result<CheckpointReport> make(const std::string& name, Parts& parts,
                              const CheckpointOptions& options);

}  // namespace checkpoints
}  // namespace outcore
