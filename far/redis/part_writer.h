// PartWriter: writes to packed chunks, whose values can only be replaced as a whole.
//
// To write a part of a chunk it reads the chunk, changes it and stores all of it again. Only one
// process writes (it has the lease and the token). Its threads are kept apart by a lock for every
// 1024th chunk, which is held from the read until the write is acknowledged. Readers take no lock.
// Any thread; allocates nothing.
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
  // Whether nothing was ever written to the chunk. If `is_written`, something is from now on.
  // Called while the chunk is locked.
  using IsUntouched = std::function<bool(uint64_t chunk, bool is_written)>;

  PartWriter(Chunks& chunks, std::shared_ptr<const packing::Packer> packer, uint64_t timeout_ns,
             IsUntouched is_untouched);
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;
  // False: there is no memory for packing.
  bool has_spaces() const { return spaces_.is_made(); }

  // Carries out kWrite and kZero for any ranges, as Chunks::run does for chunks that are not
  // packed. -EIO also if a chunk that is written in part is damaged: it has to be written as a
  // whole. REQUIRES: no two requests for the same bytes.
  void run(std::span<ChunkRequest> batch);

 private:
  static constexpr size_t kLocks = 1024, kSlotsMax = 32, kSpaces = 4;
  static constexpr size_t kRoundBytes = 512 << 10;
  using Parts = std::span<ChunkRequest* const>;

  // A chunk that is written in this round.
  struct Slot {
    std::byte *chunk = nullptr, *value = nullptr;  // buffers for both
    Parts parts;
    ChunkRequest read, write;
    bool has_lock = false, is_read = false, is_written = false;

    uint64_t number() const { return parts.front()->at; }
    bool is_zeroed() const;  // all parts are zeros
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
  std::atomic<uint32_t> given_{0};  // counts releases: a thread that waits for a lock sleeps on it
};

}  // namespace outcore::redis
