// SsdPool: where memory of oc_ssd_malloc is kept: in objects of a folder, or images of a Ceph pool.
//
// One thread at a time; the caller sees to that.
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

  // Under this URI its checkpoints are found: versioned:FOLDER, or rbd://POOL/RUN.
  const std::string& uri() const { return uri_; }
  virtual bool is_there() const = 0;
  // Creates the pool if it does not exist, and locks other processes out while its memory is
  // mapped.
  virtual Status prepare() = 0;

  // The size of the object of this name; 0: there is none. REQUIRES: prepare(), if the pool exists.
  virtual Result<uint64_t> size_of(const std::string& name) = 0;
  virtual Result<Region> map(Runtime& runtime, const std::string& name, uint64_t size_bytes) = 0;
  // Called before memory is unmapped that may be the last of the pool: keeps the pool open for
  // remove().
  virtual Status keep() { return {}; }
  // REQUIRES: the object is no longer mapped.
  virtual Status remove(const std::string& name) = 0;

  virtual CheckpointPart part_of(const std::string& name, const Region& region) const = 0;
  // Called before a checkpoint that does not contain this range of ordinary memory: the copy of an
  // earlier moment must not be part of it.
  virtual Status forget_range(const std::string& range) = 0;
  // Called after a checkpoint, when old ones are removed.
  virtual void tidy() {}
  // Called after a restart: removes objects that the checkpoint does not have.
  virtual Status keep_only(const std::vector<CheckpointObject>&) { return {}; }
  // Called when no memory of the pool is left.
  virtual void rest() {}

 protected:
  explicit SsdPool(std::string uri) : uri_(std::move(uri)) {}

 private:
  const std::string uri_;
};

// The pool that the text of OUTCORE_POOL names. Errors: EINVAL.
Result<std::unique_ptr<SsdPool>> ssd_pool(const std::string& text);
// ssd_images.cc: rbd://POOL[/[NAMESPACE/]RUN][?parameters]
Result<std::unique_ptr<SsdPool>> ssd_images(const std::string& text);

}  // namespace outcore::c
