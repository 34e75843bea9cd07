// BlockHeap: which blocks of the file `data` are in use, and which are dead but held.
//
// A block's life is [birth, death) in numbers of commits: it belongs to the states that were cut
// in it. A block that died is buried; it is free when no state that is held lies in its life.
// Next-fit: blocks are given out in ascending order, so that random writes become sequential.
// Any thread, the fault path: memory comes from the system, the lock is held for a scan of bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoints/pool/disk.h"
#include "checkpoints/pool/mapped_array.h"
#include "core/os/wait.h"

namespace outcore::versioned {

// Blocks that are neighbours.
struct Run {
  uint32_t first = 0;
  uint32_t count = 0;
};

struct Grave {
  uint32_t block = 0;
  uint32_t birth = 0;
  uint32_t death = 0;
};

// True if one of these states lies in the grave's life. REQUIRES: `held` ascends.
bool is_needed(const Grave& grave, std::span<const uint32_t> held);

class BlockHeap {
 public:
  static constexpr uint32_t kBlocksMax = UINT32_MAX;  // block 0 is no block

  BlockHeap(File& data, uint32_t chunk_bytes) : data_(data), chunk_bytes_(chunk_bytes) {}

  // For opening: how large the file is, which blocks live, which are dead but held.
  // False: the block is in use already, or lies past the end.
  bool cover_file();
  bool mark_used(uint32_t block);
  bool is_used(uint32_t block) const;
  bool adopt_grave(const Grave& grave) { return mark_used(grave.block) && kept_.push_back(grave); }

  // Up to `most` neighbouring blocks, which become used. A count of 0: `error` says why.
  Run allocate(uint32_t most, int& error);
  // Nobody needs the block: it may be given out at once.
  void free(uint32_t block);
  // The block has died and a state may need it. 0 or -ENOMEM.
  int bury(const Grave& grave);

  // A cut: what has died so far, for the commit that was cut; what dies from now on comes later.
  void take_fresh(MappedArray<Grave>& into);
  // The commit failed: it belongs to the next one.
  void give_back_fresh(MappedArray<Grave>& graves);
  // The commit is durable. What no held state needs is free; the rest is kept.
  void settle(MappedArray<Grave>& graves, std::span<const uint32_t> held);
  // States have gone. Takes what nobody needs any more from what is kept; it is still in use.
  std::vector<Run> take_unneeded(std::span<const uint32_t> held);
  // Frees them. Where many neighbours are free then, the filesystem gets their space back.
  void give_up(const std::vector<Run>& runs);
  // These blocks live again (`blocks` ascends).
  void resurrect(const MappedArray<uint32_t>& blocks);

  const MappedArray<Grave>& kept() const { return kept_; }
  uint64_t capacity() const;  // blocks of the file
  uint64_t used_count() const;
  uint64_t kept_count() const;
  // As many bits as used blocks, and no grave whose block is free.
  bool is_valid() const;

 private:
  int grow(uint64_t wanted);
  bool cover(uint64_t capacity);
  bool claim_group(uint64_t group);
  Run take_from(uint64_t begin, uint64_t end, uint32_t most);
  bool bit(uint64_t block) const { return (bits_[block / 64] >> block % 64 & 1) != 0; }
  void free_locked(uint32_t block);

  File& data_;
  const uint32_t chunk_bytes_;
  mutable os::Lock lock_;
  os::Lock growing_;  // one thread at a time makes the file larger; taken before lock_
  MappedArray<uint64_t> bits_;
  uint64_t capacity_ = 0;
  uint64_t used_count_ = 0;  // without block 0
  uint64_t cursor_ = 1;
  MappedArray<Grave> fresh_;  // since the last cut
  MappedArray<Grave> kept_;   // needed by a held state
};

}  // namespace outcore::versioned
