#include "core/store/sparse_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/descriptor_place.h"
#include "core/os/file_calls.h"
#include "core/store/direct_file.h"
#include "core/store/discard.h"
#include "core/store/io_ring.h"
#include "core/store/range.h"

namespace outcore::store {
namespace {

// Names are built without snprintf, which may allocate and is not allowed in signal handlers.
struct Name {
  char text[48];
};

char* append(char* at, const char* text) {
  while (*text != 0) *at++ = *text++;
  return at;
}

char* append_hex(char* at, uint64_t number, unsigned digits) {
  OC_ASSERT(digits <= 16);
  for (unsigned i = digits; i-- > 0;) *at++ = "0123456789abcdef"[number >> (4 * i) & 15];
  return at;
}

Name segment_name(uint64_t segment) {
  Name name;
  *append_hex(append(name.text, "segment."), segment, 12) = 0;
  return name;
}

Name temporary_name(unsigned number) {
  Name name;
  char* at = append_hex(append(name.text, ".new."), static_cast<uint64_t>(::getpid()), 8);
  *append_hex(append(at, "."), number, 8) = 0;
  return name;
}

}  // namespace

SparseStore::~SparseStore() {
  if (folder_fd_ >= 0) ::close(folder_fd_);
}

std::string SparseStore::remark() const { return is_direct() ? std::string() : why_buffered_; }

// Returns a descriptor, or -errno.
int SparseStore::open_segment(uint64_t segment, bool is_direct_wanted) const {
  OC_ASSERT(segment >> 46 == 0);
  const Name name = segment_name(segment);
  const int flags =
      (is_writable_ ? O_RDWR : O_RDONLY) | O_CLOEXEC | (is_direct_wanted ? O_DIRECT : 0);
  return os::repeat([&] { return os::above_standard(::openat(folder_fd_, name.text, flags)); });
}

// Creates the segment with its full length under another name, then renames it, so that nobody sees
// it short. 0 or -errno.
int SparseStore::make_segment(uint64_t segment) {
  static std::atomic<unsigned> turn{0};
  Name temporary;
  int fd = -1;
  do {  // repeat if a process with our number left its file
    temporary = temporary_name(turn.fetch_add(1));
    fd = os::above_standard(
        ::openat(folder_fd_, temporary.text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  } while (fd < 0 && (errno == EEXIST || errno == EINTR));
  if (fd < 0) return -errno;
  int error = os::set_size(fd, segment_bytes_);
  ::close(fd);
  const Name name = segment_name(segment);
  if (error == 0 && ::linkat(folder_fd_, temporary.text, folder_fd_, name.text, 0) != 0 &&
      errno != EEXIST)
    error = -errno;
  ::unlinkat(folder_fd_, temporary.text, 0);
  is_folder_unsynced_ = true;
  return error;
}

// Gets a descriptor of the segment; fd -1 if it does not exist and must not be created. 0 or
// -errno.
int SparseStore::acquire(uint64_t segment, bool is_direct_wanted, bool may_make,
                         DescriptorCache::Lease& lease) {
  const uint64_t key = segment * 2 + is_direct_wanted;
  lease = descriptors_.find(key);
  if (lease.fd >= 0) return 0;
  int fd = open_segment(segment, is_direct_wanted);
  if ((fd == -EMFILE || fd == -ENFILE) && descriptors_.close_idle() > 0)
    fd = open_segment(segment, is_direct_wanted);
  if (fd == -ENOENT && may_make) {
    if (const int error = make_segment(segment); error != 0) return error;
    fd = open_segment(segment, is_direct_wanted);
  }
  if (fd == -ENOENT && !may_make) return 0;
  if (fd < 0) return fd;
  lease = descriptors_.keep(key, fd);
  return 0;
}

int SparseStore::next_piece(const StoreRequest& request, size_t done_bytes, Piece& piece) {
  OC_CHECK(done_bytes < request.size_bytes);
  OC_ASSERT(base::is_power_of_two(segment_bytes_));
  const uint64_t offset = request.offset + done_bytes;
  const uint64_t segment = offset / segment_bytes_;
  piece.offset = offset % segment_bytes_;
  const auto left = static_cast<size_t>(std::min<uint64_t>(
      {request.size_bytes - done_bytes, segment_bytes_ - piece.offset, kPieceBytesMax}));
  piece.is_direct =
      is_direct() && is_direct_aligned(piece.offset, request.bytes + done_bytes, left);
  DescriptorCache::Lease lease;
  int error = acquire(segment, piece.is_direct, request.is_write, lease);
  if (error == -EINVAL && piece.is_direct) {
    refuse_direct();
    piece.is_direct = false;
    error = acquire(segment, false, request.is_write, lease);
  }
  if (error != 0) return error;
  piece.fd = lease.fd;
  piece.ticket = lease.ticket;
  piece.size_bytes = piece.is_direct ? base::round_down(left, kDirectAlignment) : left;
  OC_CHECK(piece.size_bytes != 0);
  OC_CHECK(piece.size_bytes <= segment_bytes_ - piece.offset);
  return 0;
}

int SparseStore::read(uint64_t offset, std::span<std::byte> into) {
  OC_CHECK(is_range_of(offset, into.size(), size_bytes()));
  return carry_out(*this, StoreRequest{offset, into.data(), into.size(), false, 0});
}

int SparseStore::write(uint64_t offset, std::span<const std::byte> from) {
  OC_CHECK(is_range_of(offset, from.size(), size_bytes()));
  if (!is_writable_) return -EACCES;
  std::byte* const bytes = const_cast<std::byte*>(from.data());
  const int error = carry_out(*this, StoreRequest{offset, bytes, from.size(), true, 0});
  unsynced_.mark(offset, from.size());
  return error;
}

void SparseStore::transfer(std::span<StoreRequest> batch) {
  bool has_write = false;
  for (const StoreRequest& r : batch) {
    OC_CHECK(is_range_of(r.offset, r.size_bytes, size_bytes()));
    has_write = has_write || r.is_write;
  }
  if (has_write && !is_writable_) return Store::transfer(batch);
  carry_out_batch(*this, batch, in_flight_max(traits_, batch));
  for (const StoreRequest& r : batch)
    if (r.is_write) unsynced_.mark(r.offset, r.size_bytes);
}

int SparseStore::sync_segment(uint64_t segment) {
  DescriptorCache::Lease lease;
  if (const int error = acquire(segment, false, false, lease); error != 0) return error;
  if (lease.fd < 0) return 0;
  const int error = lost_sync_.note(::fdatasync(lease.fd) == 0 ? 0 : -errno);
  descriptors_.release(lease);
  return error;
}

int SparseStore::sync() {
  if (const int lost = lost_sync_.error(); lost != 0) return lost;
  int first_error = 0;
  const uint64_t end = base::round_up(size_bytes(), segment_bytes_);
  for (uint64_t at = unsynced_.next_written(0, end); at < end;
       at = unsynced_.next_written(at, end)) {
    if (unsynced_.take(at)) {
      const int error = sync_segment(at / segment_bytes_);
      if (error != 0) unsynced_.mark(at, 1);
      if (first_error == 0) first_error = error;
    }
    at = base::round_down(at, segment_bytes_) + segment_bytes_;
  }
  if (is_folder_unsynced_.exchange(false) && ::fsync(folder_fd_) != 0 && errno != EINVAL) {
    const int error = lost_sync_.note(-errno);
    if (first_error == 0) first_error = error;
    is_folder_unsynced_ = true;
  }
  // The error of another sync, meanwhile.
  return first_error != 0 ? first_error : lost_sync_.error();
}

int SparseStore::resize(uint64_t size_bytes) {
  if (!is_writable_) return -EACCES;
  const SparseMetadata metadata{size_bytes, segment_bytes_};
  if (!check_metadata(metadata, folder_)) return -EFBIG;
  const uint64_t before = this->size_bytes();
  // What is cut off must read zero if the store grows again.
  if (size_bytes < before)
    if (const int error = discard(size_bytes, before - size_bytes); error != 0) return error;
  if (const int error = write_metadata(folder_fd_, metadata); error != 0) return error;
  size_bytes_.store(size_bytes, std::memory_order_release);
  return 0;
}

int SparseStore::discard_in_segment(uint64_t segment, uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(offset <= segment_bytes_);
  OC_CHECK(size_bytes <= segment_bytes_ - offset);
  DescriptorCache::Lease lease;
  if (const int error = acquire(segment, false, false, lease); error != 0) return error;
  if (lease.fd < 0) return 0;
  const auto zero = [&](uint64_t at, uint64_t size) {
    return write_zeros(
        segment * segment_bytes_ + at, size,
        [this](uint64_t o, std::span<const std::byte> zeros) { return write(o, zeros); });
  };
  const int error = discard_range(offset, size_bytes, zero, [&](uint64_t at, uint64_t size) {
    return free_blocks(lease.fd, at, size, DiscardMode::kHole);
  });
  descriptors_.release(lease);
  unsynced_.mark(segment * segment_bytes_, 1);
  return error;
}

int SparseStore::discard(uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(is_range_of(offset, size_bytes, this->size_bytes()));
  if (!is_writable_) return -EACCES;
  while (size_bytes > 0) {
    const uint64_t within = offset % segment_bytes_;
    const uint64_t piece = std::min(size_bytes, segment_bytes_ - within);
    const int error = discard_in_segment(offset / segment_bytes_, within, piece);
    if (error != 0) return error;
    offset += piece;
    size_bytes -= piece;
  }
  return 0;
}

bool SparseStore::is_hole(uint64_t offset, uint64_t size_bytes) const {
  if (size_bytes == 0) return true;
  for (uint64_t s = offset / segment_bytes_; s <= (offset + size_bytes - 1) / segment_bytes_; ++s)
    if (::faccessat(folder_fd_, segment_name(s).text, F_OK, 0) == 0 || errno != ENOENT)
      return false;
  return true;
}

}  // namespace outcore::store
