// PoolOpener: opens a pool for writing: founds it, or loads what its last journal says, and fills
// in OpenPool.
//
// One thread, before any other uses the pool.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoints/pool/journal_chain.h"
#include "checkpoints/pool/open_pool.h"
#include "checkpoints/pool/state.h"

namespace outcore::versioned {

inline constexpr uint32_t kChunkBytesDefault = 4096;

struct PoolOptions {
  bool may_create = false;
  uint32_t chunk_bytes = 0;  // 0: the pool's own; for a new pool kChunkBytesDefault
  // The journal gets a new base when the records since the last base are larger than that base, and
  // than this.
  uint64_t delta_bytes_min = 4 << 20;
};

class PoolOpener {
 public:
  PoolOpener(OpenPool& pool, JournalChain& journals) : pool_(pool), journals_(journals) {}

  // As Pool::open().
  Status open(const PoolOptions& options);

 private:
  Status can_found(const PoolOptions& options) const;
  Status found(const PoolOptions& options);
  Status load(const PoolOptions& options, const std::vector<uint32_t>& numbers);
  Status adopt(Loaded& loaded);
  Status adopt_blocks(const State& state);

  OpenPool& pool_;
  JournalChain& journals_;
};

}  // namespace outcore::versioned
