// Checkpoints: the commits of a pool that have names: listed, removed, renamed, and opened for
// reading. See Pool for what the functions promise.
//
// Any thread but the fault path. Each function locks the pool's mutex.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoints/pool/journal_chain.h"
#include "checkpoints/pool/open_pool.h"
#include "checkpoints/pool/snapshot.h"

namespace outcore::versioned {

struct CheckpointInfo {
  Checkpoint about;
  uint64_t only_bytes = 0;  // what would become free if this checkpoint alone were removed
};

class Checkpoints {
 public:
  Checkpoints(OpenPool& pool, JournalChain& journals) : pool_(pool), journals_(journals) {}

  std::vector<CheckpointInfo> list() const;
  bool has(const std::string& name) const;
  Status remove(const std::vector<std::string>& names);
  Status rename(const std::string& from, const std::string& to);
  Result<std::shared_ptr<Snapshot>> open(const std::string& name);

 private:
  OpenPool& pool_;
  JournalChain& journals_;
};

}  // namespace outcore::versioned
