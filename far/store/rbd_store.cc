#include "far/store/rbd_store.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/os/wait.h"
#include "core/store/range.h"

namespace outcore::store {
namespace {

constexpr uint64_t kZeroPieceBytes = 16 << 20;
constexpr uint64_t kSilenceNs = 1'000'000'000;

}  // namespace

int RbdStore::refusal(bool is_change) const {
  if (::getpid() != process_) return -EIO;  // the threads of librados are the parent's
  return is_change && !is_writable_ ? -EACCES : 0;
}

int RbdStore::read(uint64_t offset, std::span<std::byte> into) {
  StoreRequest one{offset, into.data(), into.size(), false, 0};
  transfer({&one, 1});
  return one.result;
}

int RbdStore::write(uint64_t offset, std::span<const std::byte> from) {
  StoreRequest one{offset, const_cast<std::byte*>(from.data()), from.size(), true, 0};
  transfer({&one, 1});
  return one.result;
}

void RbdStore::transfer(std::span<StoreRequest> batch) {
  const bool is_silent = os::now_ns() < silent_until_ns_.load(std::memory_order_relaxed);
  {
    RbdFlights flights(*library_);
    for (StoreRequest& r : batch) begin(r, is_silent, flights);
  }
  note_answers(batch, is_silent);
  if (refusal(false) != 0) return;
  // After the reads: what they returned came from an image that existed then.
  if (const int error = check_alive(); error != 0)
    for (StoreRequest& r : batch)
      if (r.result == 0) r.result = error;
}

void RbdStore::begin(StoreRequest& r, bool is_silent, RbdFlights& flights) {
  OC_CHECK(is_range_of(r.offset, r.size_bytes, size_bytes()));
  r.result = refusal(r.is_write);
  if (r.result != 0 || r.size_bytes == 0) return;
  char* const bytes = reinterpret_cast<char*>(r.bytes);
  if (!r.is_write)
    return flights.begin(&r.result, static_cast<long>(r.size_bytes), [&](rbd_completion_t done) {
      return library_->rbd_aio_read(image_, r.offset, r.size_bytes, bytes, done);
    });
  if (is_silent) {
    r.result = -ETIMEDOUT;
    return;
  }
  if (is_watched()) written_.mark(r.offset, r.size_bytes);
  flights.begin(&r.result, 0, [&](rbd_completion_t done) {
    return library_->rbd_aio_write(image_, r.offset, r.size_bytes, bytes, done);
  });
}

// A flush writes batch after batch. If no OSD answers, only the first batch should wait for the
// timeout. Reads are always sent: their failure would be final, and a late answer is better than
// none.
void RbdStore::note_answers(std::span<const StoreRequest> batch, bool was_silent) {
  const bool has_timeout = std::any_of(
      batch.begin(), batch.end(), [](const StoreRequest& r) { return r.result == -ETIMEDOUT; });
  if (has_timeout && !was_silent)
    silent_until_ns_.store(os::now_ns() + kSilenceNs, std::memory_order_relaxed);
  else if (!has_timeout && was_silent)
    silent_until_ns_.store(0, std::memory_order_relaxed);
}

// What was written is durable already. It only checks again that nobody else could write.
int RbdStore::sync() {
  if (const int error = refusal(false); error != 0) return error;
  if (!is_writable_) return 0;
  if (const int error = library_->rbd_flush(image_); error != 0) return error;
  return lock_.check(*library_, image_);
}

int RbdStore::resize_image(uint64_t size_bytes) {
  const uint64_t before = this->size_bytes();
  if (const int error = library_->rbd_resize(image_, size_bytes); error != 0) return error;
  size_bytes_.store(size_bytes, std::memory_order_release);
  if (size_bytes > before) watch_from(before);
  if (size_bytes < before && is_watched())  // what is cut off reads zero if the store grows again
    written_.clear_inside(size_bytes, before - size_bytes);
  return 0;
}

int RbdStore::resize(uint64_t size_bytes) {
  if (const int error = refusal(true); error != 0) return error;
  const uint64_t before = this->size_bytes();
  PoolSpace space;
  if (size_bytes > before && !has_space(size_bytes - before, &space)) {
    reclaim_soon();  // callers hold locks for which others wait
    return -ENOSPC;
  }
  if (const int error = resize_image(size_bytes); error != 0) return error;
  if (!is_thick_ || size_bytes <= before) return 0;
  const int error = zero(before, size_bytes - before, RBD_WRITE_ZEROES_FLAG_THICK_PROVISION);
  if (error != 0) static_cast<void>(resize_image(before));
  return error;
}

int RbdStore::reserve(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  if (const int error = refusal(true); error != 0) return error;
  return is_thick_ ? 0 : -ENOTSUP;  // thick images have all their space, and keep it
}

// Writes zeros to every byte of the range, also where it begins or ends within an object.
int RbdStore::zero(uint64_t offset, uint64_t size_bytes, int flags) {
  std::array<int, RbdFlights::kFlightsMax> results = {};
  RbdFlights flights(*library_);
  const uint64_t end = offset + size_bytes;
  int error = 0;
  for (size_t i = 0; offset < end; ++i) {
    int& result = results[i % results.size()];
    if (i % results.size() == 0) flights.finish();
    if (error = *std::min_element(results.begin(), results.end()); error != 0) return error;
    const uint64_t piece = std::min(end, (offset / kZeroPieceBytes + 1) * kZeroPieceBytes) - offset;
    flights.begin(&result, 0, [&](rbd_completion_t done) {
      return library_->rbd_aio_write_zeroes(image_, offset, piece, done, flags, 0);
    });
    offset += piece;
  }
  flights.finish();
  return *std::min_element(results.begin(), results.end());
}

int RbdStore::discard(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  if (const int error = refusal(true); error != 0) return error;
  const int flags = is_thick_ ? RBD_WRITE_ZEROES_FLAG_THICK_PROVISION : 0;
  const int error = zero(offset, size_bytes, flags);
  if (error == 0 && is_watched()) written_.clear_inside(offset, size_bytes);
  return error;
}

// Whole objects are removed, and parts of 64 KiB (rbd_discard_granularity_bytes); the rest stays as
// it is.
int RbdStore::release(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  if (const int error = refusal(true); error != 0) return error;
  if (is_thick_ || size_bytes == 0) return 0;
  int result = 0;
  RbdFlights flights(*library_);
  flights.begin(&result, 0, [&](rbd_completion_t done) {
    return library_->rbd_aio_discard(image_, offset, size_bytes, done);
  });
  flights.finish();
  return result;
}

bool RbdStore::is_hole(uint64_t offset, uint64_t size_bytes) const {
  return offset >= watched_from_.load(std::memory_order_acquire) &&
         written_.is_untouched(offset, size_bytes);
}

}  // namespace outcore::store
