#include "core/store/io_ring.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>

#include "core/base/assert.h"
#include "core/os/descriptor_place.h"
#include "core/os/own_ring.h"

namespace outcore::store {
namespace {

// io_uring is forbidden or unknown here: other threads need not try.
std::atomic<bool> is_refused_for_good{false};

// Rings that have ended. Another thread's may get their addresses next. That it comes after them is
// told to ThreadSanitizer by this alone: it does not see how liburing maps and unmaps memory.
std::atomic<uint32_t> rings_ended{0};

// As io_uring_queue_init, with the mark of our rings (own_ring.h).
int init_ring_with(io_uring* ring, unsigned flags) {
  io_uring_params parameters{};
  parameters.flags = flags;
  const int fd = os::set_up_own_ring(IoRing::kDepth, &parameters);
  if (fd < 0) return fd;
  if (const int error = ::io_uring_queue_mmap(fd, &parameters, ring); error != 0) {
    ::close(fd);
    return error;
  }
  static_cast<void>(rings_ended.load(std::memory_order_acquire));
  ring->features = parameters.features;
  // Entry i of the queue is request i; newer releases of the library set this themselves.
  for (unsigned i = 0; i < parameters.sq_entries; ++i) ring->sq.array[i] = i;
  return 0;
}

int init_ring(io_uring* ring) {
  // From the best to what every kernel with io_uring accepts: completions only when asked for
  // (6.1), no interrupts of the thread (5.19), plain.
  const unsigned flags[] = {IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
                            IORING_SETUP_COOP_TASKRUN, 0};
  int error = 0;
  for (const unsigned f : flags) {
    error = init_ring_with(ring, f);
    if (error != -EINVAL) break;
  }
  if (error != 0) return error;
  ring->enter_ring_fd = ring->ring_fd = os::above_standard(ring->ring_fd);
  if (ring->ring_fd >= 0) return 0;
  error = -errno;
  ::io_uring_queue_exit(ring);
  return error;
}

}  // namespace

// The thread's ring is closed: what the program does after that (destructors of the thread's and of
// the process's objects, functions of atexit) goes without one.
thread_local constinit bool has_ended = false;

struct RingOfThread {
  std::unique_ptr<IoRing> ring;

  ~RingOfThread() { has_ended = true; }

  IoRing* get() {
    const auto process = static_cast<uint64_t>(::getpid());
    if (ring != nullptr && (ring->is_broken_ || ring->owner_process_ != process)) ring.reset();
    if (ring != nullptr) return ring.get();
    if (is_refused_for_good.load(std::memory_order_relaxed)) return nullptr;
    std::unique_ptr<IoRing> fresh(new (std::nothrow) IoRing);
    if (fresh == nullptr || !fresh->open()) return nullptr;
    fresh->owner_process_ = process;
    ring = std::move(fresh);
    return ring.get();
  }
};

IoRing* IoRing::of_this_thread() {
  if (has_ended) return nullptr;
  thread_local RingOfThread holder;
  return holder.get();
}

bool IoRing::open() {
  const int error = init_ring(&ring_);
  if (error != 0) {
    ring_.ring_fd = -1;
    if (error == -ENOSYS || error == -EPERM || error == -EACCES) is_refused_for_good = true;
    return false;
  }
  for (unsigned i = 0; i < kDepth; ++i) free_slots_[i] = i;
  free_count_ = kDepth;
  return true;
}

IoRing::~IoRing() {
  if (ring_.ring_fd < 0) return;
  rings_ended.fetch_add(1, std::memory_order_release);
  ::io_uring_queue_exit(&ring_);
}

// The kernel keeps registered buffers pinned. So a changed set is taken over before the next
// transfer; otherwise a new buffer at an old address would be mistaken for the old one.
void IoRing::refresh_buffers() {
  BufferSet& set = BufferSet::of_process();
  if (set.generation() == generation_) return;
  if (!registered_.empty()) ::io_uring_unregister_buffers(&ring_);
  registered_.clear();
  std::vector<iovec> vectors;
  try {
    const uint64_t generation = set.copy(registered_, kBuffersMax);
    vectors.reserve(registered_.size());
    generation_ = generation;
  } catch (const std::bad_alloc&) {  // without them, until the next transfer
    registered_.clear();
  }
  if (registered_.empty()) return;
  for (const Buffer b : registered_) vectors.push_back({b.data(), b.size()});
  // If registration is refused (RLIMIT_MEMLOCK, or memory that cannot be pinned), continue without
  // it until the set changes.
  if (::io_uring_register_buffers(&ring_, vectors.data(), static_cast<unsigned>(vectors.size())) !=
      0)
    registered_.clear();
}

int IoRing::index_of_buffer(const std::byte* bytes, size_t size_bytes) const {
  const auto after =
      std::upper_bound(registered_.begin(), registered_.end(), bytes,
                       [](const std::byte* b, Buffer buffer) { return b < buffer.data(); });
  if (after == registered_.begin()) return -1;
  const Buffer candidate = *(after - 1);
  const auto skipped = static_cast<size_t>(bytes - candidate.data());
  if (skipped > candidate.size() || size_bytes > candidate.size() - skipped) return -1;
  return static_cast<int>(after - 1 - registered_.begin());
}

void IoRing::finish(unsigned slot_index, int result) {
  OC_CHECK(slot_index < kDepth);
  OC_CHECK(free_count_ < kDepth);
  OC_CHECK(result <= 0);
  slots_[slot_index].request->result = result;
  free_slots_[free_count_++] = slot_index;
}

// Prepares the next piece of the slot's request. False if the request has ended.
bool IoRing::start_piece(PieceSource& source, unsigned slot_index) {
  OC_CHECK(slot_index < kDepth);
  Slot& slot = slots_[slot_index];
  const StoreRequest& request = *slot.request;
  while (slot.done_bytes < request.size_bytes) {
    slot.piece = Piece{};
    const int error = source.next_piece(request, slot.done_bytes, slot.piece);
    if (error != 0) {
      finish(slot_index, error);
      return false;
    }
    OC_CHECK(slot.piece.size_bytes != 0);
    OC_CHECK(slot.piece.size_bytes <= request.size_bytes - slot.done_bytes);
    if (slot.piece.fd >= 0) {
      queue(slot_index);
      return true;
    }
    std::fill_n(request.bytes + slot.done_bytes, slot.piece.size_bytes, std::byte{0});
    source.release(slot.piece);
    slot.done_bytes += slot.piece.size_bytes;
  }
  finish(slot_index, 0);
  return false;
}

void IoRing::queue(unsigned slot_index) {
  const Slot& slot = slots_[slot_index];
  const Piece& piece = slot.piece;
  OC_CHECK(piece.size_bytes <= kPieceBytesMax);
  std::byte* const bytes = slot.request->bytes + slot.done_bytes;
  const auto size = static_cast<unsigned>(piece.size_bytes);
  io_uring_sqe* sqe = ::io_uring_get_sqe(&ring_);
  OC_CHECK(sqe != nullptr);  // there are as many entries as slots, and each slot is queued once
  const int buffer = index_of_buffer(bytes, piece.size_bytes);
  if (slot.request->is_write && buffer >= 0)
    ::io_uring_prep_write_fixed(sqe, piece.fd, bytes, size, piece.offset, buffer);
  else if (slot.request->is_write)
    ::io_uring_prep_write(sqe, piece.fd, bytes, size, piece.offset);
  else if (buffer >= 0)
    ::io_uring_prep_read_fixed(sqe, piece.fd, bytes, size, piece.offset, buffer);
  else
    ::io_uring_prep_read(sqe, piece.fd, bytes, size, piece.offset);
  ::io_uring_sqe_set_data64(sqe, slot_index);
}

// False if the ring can no longer be used.
bool IoRing::submit_and_wait() {
  const int submitted = ::io_uring_submit_and_wait(&ring_, 1);
  return submitted >= 0 || submitted == -EINTR || submitted == -EAGAIN || submitted == -EBUSY;
}

void IoRing::reap(PieceSource& source) {
  io_uring_cqe* completions[kDepth];
  const unsigned count = ::io_uring_peek_batch_cqe(&ring_, completions, kDepth);
  OC_CHECK(count <= kDepth - free_count_);
  for (unsigned i = 0; i < count; ++i) {
    const auto slot_index = static_cast<unsigned>(::io_uring_cqe_get_data64(completions[i]));
    OC_CHECK(slot_index < kDepth);
    const int outcome = completions[i]->res;
    ::io_uring_cqe_seen(&ring_, completions[i]);
    Slot& slot = slots_[slot_index];
    source.release(slot.piece);
    if (outcome == -EAGAIN || outcome == -ECANCELED || outcome == -EOPNOTSUPP) {
      // The ring refuses it (no memory, an old filesystem): a plain call waits, or reports the
      // reason.
      finish(slot_index, carry_out(source, *slot.request, slot.done_bytes));
      continue;
    }
    const int error = book_piece(source, slot.piece, outcome, slot.done_bytes);
    if (error != 0)
      finish(slot_index, error);
    else
      start_piece(source, slot_index);
  }
}

// The ring fails (for example because its descriptor was closed). Waits for the transfers that the
// kernel has, since it may still write to the buffers, and carries out the others by plain calls.
void IoRing::abandon(PieceSource& source) {
  is_broken_ = true;
  unsigned held_count = kDepth - free_count_ - ::io_uring_sq_ready(&ring_);
  std::array<bool, kDepth> is_free{};
  for (unsigned i = 0; i < free_count_; ++i) is_free[free_slots_[i]] = true;
  while (held_count > 0) {
    io_uring_cqe* completion = nullptr;
    const int error = ::io_uring_wait_cqe(&ring_, &completion);
    if (error == -EINTR || error == -EAGAIN) continue;
    if (error != 0) break;
    const auto slot_index = static_cast<unsigned>(::io_uring_cqe_get_data64(completion));
    OC_CHECK(slot_index < kDepth);
    OC_CHECK(!is_free[slot_index]);
    Slot& slot = slots_[slot_index];
    source.release(slot.piece);
    int result = book_piece(source, slot.piece, completion->res, slot.done_bytes);
    if (result == 0) result = carry_out(source, *slot.request, slot.done_bytes);
    finish(slot_index, result);
    is_free[slot_index] = true;
    ::io_uring_cqe_seen(&ring_, completion);
    --held_count;
  }
  for (unsigned i = 0; i < kDepth; ++i) {
    if (is_free[i]) continue;
    source.release(slots_[i].piece);
    finish(i, held_count > 0 ? -EIO : carry_out(source, *slots_[i].request, slots_[i].done_bytes));
  }
}

void IoRing::run(PieceSource& source, std::span<StoreRequest> batch, unsigned in_flight_max) {
  refresh_buffers();
  const unsigned depth = in_flight_max == 0 ? kDepth : std::min(in_flight_max, kDepth);
  OC_CHECK(free_count_ == kDepth);
  size_t next = 0;
  while (next < batch.size() || free_count_ < kDepth) {
    while (next < batch.size() && kDepth - free_count_ < depth) {
      const unsigned slot_index = free_slots_[--free_count_];
      slots_[slot_index] = Slot{&batch[next++], 0, {}};
      start_piece(source, slot_index);
    }
    if (free_count_ == kDepth) continue;
    if (!submit_and_wait()) {
      abandon(source);
      for (; next < batch.size(); ++next) batch[next].result = carry_out(source, batch[next]);
      return;
    }
    reap(source);
  }
}

void carry_out_batch(PieceSource& source, std::span<StoreRequest> batch, unsigned in_flight_max) {
  // A ring gains nothing for a single transfer.
  IoRing* ring = batch.size() > 1 ? IoRing::of_this_thread() : nullptr;
  if (ring != nullptr) return ring->run(source, batch, in_flight_max);
  for (StoreRequest& request : batch) request.result = carry_out(source, request);
}

}  // namespace outcore::store
