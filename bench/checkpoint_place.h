// CheckpointPlace: where a benchmark's checkpoints rest, and what they are measured beside: a
// folder of a disk, or images of a Ceph pool.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::bench {

// A value: what it names is made by those who open it. One process of a benchmark after the other.
class CheckpointPlace {
 public:
  // The object that has ordinary memory.
  static constexpr const char* kMemory = "memory";

  // Within the folder, which is the benchmark's own: a pool, and files beside it.
  static CheckpointPlace in_folder(std::string folder);
  // An image (rbd://POOL/IMAGE), whose checkpoints are snapshots, and others named after it.
  static CheckpointPlace on_ceph(std::string uri);

  // The region that is checkpointed.
  std::string pages() const;
  // What names its checkpoints: the pool, or the image.
  std::string pool() const;
  // Bytes of the same kind without checkpoints.
  std::string plain() const;
  // The region's bytes at a checkpoint. REQUIRES: on Ceph, that it is the only part. Errors: those
  // of uri_of_checkpoint().
  Result<std::string> at(const std::string& checkpoint) const;

  // Seconds to write as many bytes, and to have them safe, past Outcore's memory: by four threads a
  // MiB each. Leaves nothing. Errors: of the system, or of the store.
  Result<double> write_plainly(uint64_t size_bytes) const;

  // Before anything is made. Errors: EEXIST (an image, or one named after it, is there: it is not
  // ours), and what keeps from looking.
  Status check_free() const;
  // Removes the images, with their checkpoints; a folder goes with its owner.
  Status remove() const;

 private:
  CheckpointPlace(std::string at, bool is_ceph) : at_(std::move(at)), is_ceph_(is_ceph) {}
  std::string image(const std::string& suffix) const;
  std::vector<std::string> images() const;  // all that are made

  std::string at_;  // the folder, or the image's URI
  bool is_ceph_;
};

}  // namespace outcore::bench
