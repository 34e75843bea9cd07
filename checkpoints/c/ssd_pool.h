// SsdPool: where memory of oc_ssd_malloc rests: objects of a folder, or images of a Ceph pool.
//
// The caller keeps other threads out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "outcore/checkpoint.h"
#include "outcore/runtime.h"

namespace outcore::c {

class SsdPool {
 public:
  virtual ~SsdPool() = default;

  // What its checkpoints are named by: versioned:FOLDER, or rbd://POOL/RUN.
  const std::string& uri() const { return uri_; }
  virtual bool is_there() const = 0;
  // Made if there is none, and kept from other processes as long as memory of it is mapped.
  virtual Status prepare() = 0;

  // Bytes that it has under the name; 0: none. REQUIRES: prepare(), if it is there.
  virtual Result<uint64_t> size_of(const std::string& name) = 0;
  virtual Result<Region> map(Runtime& runtime, const std::string& name, uint64_t size_bytes) = 0;
  // Before the memory is unmapped that may be the last: remove() will find it open.
  virtual Status keep() { return {}; }
  // REQUIRES: it is not mapped any more.
  virtual Status remove(const std::string& name) = 0;

  virtual CheckpointPart part_of(const std::string& name, const Region& region) const = 0;
  // Before a checkpoint without a range of ordinary memory: one of another moment is not in it.
  virtual Status forget_range(const std::string& range) = 0;
  // After one, when old ones are removed.
  virtual void tidy() {}
  // After a restart: names that the checkpoint does not have are gone.
  virtual Status keep_only(const std::vector<CheckpointObject>&) { return {}; }
  // No memory of it is left.
  virtual void rest() {}

 protected:
  explicit SsdPool(std::string uri) : uri_(std::move(uri)) {}

 private:
  const std::string uri_;
};

// Of the text of OUTCORE_POOL. Errors: EINVAL.
Result<std::unique_ptr<SsdPool>> ssd_pool(const std::string& text);
// ssd_images.cc: rbd://POOL[/[NAMESPACE/]RUN][?parameters]
Result<std::unique_ptr<SsdPool>> ssd_images(const std::string& text);

}  // namespace outcore::c
