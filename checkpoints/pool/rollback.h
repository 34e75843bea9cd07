// Rollback: makes the objects of an open pool what they are in a checkpoint, and commits that.
//
// Any thread but the fault path. A rollback holds the pool's mutex to its end, and closes the gate
// while maps change.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoints/pool/chunk_writer.h"
#include "checkpoints/pool/committer.h"
#include "checkpoints/pool/open_pool.h"
#include "checkpoints/pool/state.h"

namespace outcore::versioned {

class Rollback {
 public:
  Rollback(OpenPool& pool, ChunkWriter& writer, Committer& committer)
      : pool_(pool), writer_(writer), committer_(committer) {}

  // As Pool::roll_back().
  Status roll_back(const std::string& name);

 private:
  int restore(const State& state, std::vector<std::shared_ptr<Object>>& missing,
              MappedArray<uint32_t>& resurrected);
  int restore_object(Object& object, const StateObject& as, MappedArray<uint32_t>& resurrected);

  OpenPool& pool_;
  ChunkWriter& writer_;
  Committer& committer_;
};

}  // namespace outcore::versioned
