// PartWriter: writes to packed chunks, whose values can only be replaced as a whole.
//
// A write of a part reads its chunk, changes it and stores all of it anew. One process writes (its
// lease, its token); its threads are kept apart by a lock for every 1024th chunk, held from the
// read until the write is acknowledged. Readers take none of them. Any thread; nothing allocates.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "far/redis/chunks.h"

namespace outcore::redis {

class PartWriter {
 public:
  // True if nothing was ever written to the chunk; if `is_written`, from now on something is.
  // Called while the chunk is locked.
  using IsUntouched = std::function<bool(uint64_t chunk, bool is_written)>;

  PartWriter(Chunks& chunks, std::shared_ptr<const packing::Packer> packer, uint64_t timeout_ns,
             IsUntouched is_untouched);
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;
  // False: no memory to pack in.
  bool has_spaces() const { return spaces_.is_made(); }

  // Carries out kWrite and kZero of any parts, as Chunks::run does where nothing is packed. -EIO
  // also where the chunk of a part is damaged: all of it has to be written. REQUIRES: no two of the
  // same bytes.
  void run(std::span<ChunkRequest> batch);

 private:
  static constexpr size_t kLocks = 1024, kSlotsMax = 32, kSpaces = 4;
  static constexpr size_t kRoundBytes = 512 << 10;
  using Parts = std::span<ChunkRequest* const>;

  // One chunk that is written in this round.
  struct Slot {
    std::byte *chunk = nullptr, *value = nullptr;  // memory for them
    Parts parts;
    ChunkRequest read, write;
    bool has_lock = false, is_read = false, is_written = false;

    uint64_t number() const { return parts.front()->at; }
    bool is_zeroed() const;  // no part has bytes
    uint64_t covered_bytes() const;
  };

  Holder& lock_of(uint64_t chunk) { return locks_[chunk % kLocks]; }
  size_t begin_round(Parts sorted, std::span<Slot> slots, uint64_t deadline_ns);
  bool lock(Slot& slot, std::span<const Slot> before, uint64_t deadline_ns);
  void begin(Slot& slot);
  void carry_out(std::span<Slot> slots, bool is_write);
  void change(Slot& slot, std::byte* work);
  void end(Slot& slot);

  Chunks& chunks_;
  const std::shared_ptr<const packing::Packer> packer_;
  const uint64_t timeout_ns_;
  const IsUntouched is_untouched_;
  const size_t work_bytes_, slot_bytes_, slot_count_;
  SpacePool spaces_;
  Holder locks_[kLocks];
  std::atomic<uint32_t> given_{0};  // counts: who waits for a lock sleeps on it
};

}  // namespace outcore::redis
