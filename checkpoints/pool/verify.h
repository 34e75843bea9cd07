// Verification: whether what a pool holds is what was written. It reads alone, beside a writer in
// any process: a pool that may not be written, or that is a copy of another, is verified as well.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "checkpoints/pool/disk.h"
#include "outcore/result.h"

namespace outcore::versioned {

// A chunk whose bytes are not those that were written.
struct BadChunk {
  std::string object;
  std::string checkpoint;  // empty: in the last commit
  uint64_t chunk = 0;
  std::string why;
};

struct PoolCheck {
  std::vector<BadChunk> bad;
  uint32_t chunk_bytes = 0;
};

// Reads every chunk that a checkpoint or the last commit refers to, each block once, and returns at
// most `bad_max` bad ones. Errors: those that keep it from reading; EINVAL (no pool); EIO (the
// journal is damaged: the message says which checkpoints can still be read); EBUSY (its writer
// commits all the time, or a copy has got one meanwhile: again).
Result<PoolCheck> verify_pool(const std::shared_ptr<Disk>& disk, size_t bad_max = 1000);
// The same of one checkpoint. ENOENT: there is none of this name.
Result<PoolCheck> verify_checkpoint(const std::shared_ptr<Disk>& disk, const std::string& name,
                                    size_t bad_max);

// Explains the damage of a journal, and what can still be read.
Error explain_damage(Disk& disk, const Error& damage);

}  // namespace outcore::versioned
