// BlockHeap: which blocks of the file `data` are in use, and which are dead but still needed by a
// checkpoint.
//
// A block lives in [birth, death), counted in numbers of commits: it belongs to the states that
// were committed in that interval. When it dies it is buried: a *grave* notes its life. It becomes
// free when no held state lies in its life. Blocks are given out in ascending order (next-fit), so
// that random writes become sequential. Any thread, the fault path: memory comes from the kernel,
// and the lock is held only while bits are scanned.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoints/pool/disk.h"
#include "checkpoints/pool/mapped_array.h"
#include "core/os/wait.h"

namespace outcore::versioned {

// Neighbouring blocks.
struct Run {
  uint32_t first = 0;
  uint32_t count = 0;
};

struct Grave {
  uint32_t block = 0;
  uint32_t birth = 0;
  uint32_t death = 0;
};

// Whether one of these states lies in the life of the block. REQUIRES: `held` ascends.
bool is_needed(const Grave& grave, std::span<const uint32_t> held);

class BlockHeap {
 public:
  static constexpr uint32_t kBlocksMax = UINT32_MAX;  // block 0 is never used

  BlockHeap(File& data, uint32_t chunk_bytes) : data_(data), chunk_bytes_(chunk_bytes) {}

  // While the pool is opened: sets how large the file is, which blocks live, and which are dead but
  // needed. False: the block is in use already, or lies past the end.
  bool cover_file();
  bool mark_used(uint32_t block);
  bool is_used(uint32_t block) const;
  bool adopt_grave(const Grave& grave) { return mark_used(grave.block) && kept_.push_back(grave); }

  // Takes up to `most` neighbouring blocks. If the count is 0, `error` says why.
  Run allocate(uint32_t most, int& error);
  // The block is not needed by anybody: it may be allocated again at once.
  void free(uint32_t block);
  // The block has died, but a state may need it. 0 or -ENOMEM.
  int bury(const Grave& grave);

  // At a cut: moves the graves of all blocks that died before it to `into`. What dies from now on
  // belongs to the next commit.
  void take_graves(MappedArray<Grave>& into);
  // The commit failed: its graves belong to the next one.
  void return_graves(MappedArray<Grave>& graves);
  // The commit is durable. Blocks that no held state needs become free; the other graves are kept.
  void settle(MappedArray<Grave>& graves, std::span<const uint32_t> held);
  // Some states are no longer held. Removes the kept graves that nobody needs any more, and returns
  // their blocks, which are still in use.
  std::vector<Run> remove_unneeded(std::span<const uint32_t> held);
  // Frees the blocks. Where that makes many neighbouring blocks free, their space goes back to the
  // filesystem.
  void free_runs(const std::vector<Run>& runs);
  // Frees what has died since the last cut and was born after this commit, the last: no commit has
  // it. REQUIRES: none is under way.
  void free_young(uint32_t commit);
  // For a full disk: gives the space of free blocks back to the filesystem, if some were freed
  // since the last time: that of all groups of 64 neighbours; and that of others, so many at a time
  // that it ends within seconds. The first also on the fault path.
  void give_back_groups();
  void give_back_singles();
  // Makes these blocks live again (`blocks` ascends).
  void resurrect(const MappedArray<uint32_t>& blocks);

  const MappedArray<Grave>& kept() const { return kept_; }
  uint64_t capacity() const;  // blocks of the file
  uint64_t used_count() const;
  uint64_t kept_count() const;
  // Checks that as many bits are set as blocks are in use, and that no grave is of a free block.
  bool is_valid() const;

 private:
  // Space goes back to the filesystem in groups of 64 neighbouring blocks, a word of bits. For a
  // single block that would take a fifth of a millisecond, and fragment the file.
  static constexpr uint64_t kGroup = 64;

  int grow(uint64_t wanted);
  bool cover(uint64_t capacity);
  bool claim_group(uint64_t group);
  void give_back(uint64_t first_group, uint64_t end_group);
  uint64_t punch_groups(uint64_t first_group, uint64_t end_group);
  uint64_t punch_free_of(uint64_t word);
  Run take_from(uint64_t begin, uint64_t end, uint32_t most);
  bool bit(uint64_t block) const { return (bits_[block / 64] >> block % 64 & 1) != 0; }
  void free_locked(uint32_t block);

  File& data_;
  const uint32_t chunk_bytes_;
  mutable os::Lock lock_;
  os::Lock growing_;  // held by the one thread that enlarges the file; locked before lock_
  MappedArray<uint64_t> bits_;
  uint64_t capacity_ = 0;
  uint64_t used_count_ = 0;  // without block 0
  uint64_t cursor_ = 1;
  uint64_t freed_count_ = kGroup;  // since the pool was opened; what was free before is unknown
  uint64_t freed_at_groups_ = 0, freed_at_singles_ = 0;  // when space was last given back
  uint64_t singles_cursor_ = 0;  // the word from which give_back_singles() goes on
  MappedArray<Grave> fresh_;     // since the last cut
  MappedArray<Grave> kept_;      // those that a held state needs
};

}  // namespace outcore::versioned
