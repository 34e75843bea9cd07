// IoRing: the calling thread's io_uring, shared by all stores that the thread uses.
//
// Created at a thread's first batch, closed when the thread ends; a forked child creates its own.
// Where io_uring is not available (kernel, seccomp, sysctl, no descriptors left) batches are
// carried out by pread and pwrite. Not for the fault path.
#pragma once

#include <liburing.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/store/buffer_set.h"
#include "core/store/io_piece.h"
#include "outcore/store.h"

namespace outcore::store {

// Carries out a batch and sets every result; at most `in_flight_max` transfers at a time (0: as
// many as a ring holds).
void carry_out_batch(PieceSource& source, std::span<StoreRequest> batch, unsigned in_flight_max);

class IoRing {
 public:
  static constexpr unsigned kDepth = 64;
  static constexpr size_t kBuffersMax = 1024;  // the most that a kernel before 5.13 registers

  // nullptr if io_uring is not available.
  static IoRing* of_this_thread();
  ~IoRing();
  IoRing(const IoRing&) = delete;
  IoRing& operator=(const IoRing&) = delete;

  void run(PieceSource& source, std::span<StoreRequest> batch, unsigned in_flight_max);

  // Number of buffers registered with the kernel now; for tests.
  size_t registered_count() const { return registered_.size(); }

 private:
  // A request that is being carried out.
  struct Slot {
    StoreRequest* request = nullptr;
    size_t done_bytes = 0;
    Piece piece;
  };

  IoRing() = default;
  bool open();
  void refresh_buffers();
  int index_of_buffer(const std::byte* bytes, size_t size_bytes) const;
  bool start_piece(PieceSource& source, unsigned slot_index);
  void queue(unsigned slot_index);
  bool submit_and_wait();
  void reap(PieceSource& source);
  void finish(unsigned slot_index, int result);
  void abandon(PieceSource& source);

  io_uring ring_{};
  bool is_broken_ = false;
  uint64_t owner_process_ = 0;
  uint64_t generation_ = 0;         // of the buffer set of which registered_ is a copy
  std::vector<Buffer> registered_;  // ascending; the index is the kernel's
  std::array<Slot, kDepth> slots_{};
  std::array<unsigned, kDepth> free_slots_{};
  unsigned free_count_ = 0;

  friend struct RingOfThread;
};

}  // namespace outcore::store
