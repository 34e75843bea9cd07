#include "core/store/direct_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <string_view>
#include <vector>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/descriptor_place.h"
#include "core/os/file_calls.h"
#include "core/os/uapi.h"
#include "core/store/io_ring.h"
#include "core/store/uri.h"

namespace outcore::store {

int reopen_direct(int fd, bool is_writable) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d",
                fd);  // the same file, even if it was renamed
  const int flags = (is_writable ? O_RDWR : O_RDONLY) | O_DIRECT | O_CLOEXEC;
  const int direct = os::above_standard(::open(path, flags));
  return direct >= 0 ? direct : -errno;
}

std::string why_never_direct(int fd) {
  struct statfs filesystem;
  if (::fstatfs(fd, &filesystem) == 0 &&
      (filesystem.f_type == TMPFS_MAGIC || filesystem.f_type == RAMFS_MAGIC))
    return "tmpfs keeps files in memory";  // newer kernels accept O_DIRECT there and ignore it
  return {};
}

namespace {

// Why direct transfers fail, found out by one; empty: they do not.
std::string why_not_direct(int direct_fd) {
  alignas(kDirectAlignment) std::byte page[kDirectAlignment];
  const ssize_t got = os::repeat([&] { return ::pread(direct_fd, page, sizeof page, 0); });
  return got == -EINVAL ? "O_DIRECT is refused by the filesystem" : "";
}

}  // namespace

DirectFile::~DirectFile() {
  delete[] cached_.load();
  if (direct_fd_ >= 0) ::close(direct_fd_);
  if (fd_ >= 0) ::close(fd_);
}

Status DirectFile::adopt(int fd, bool is_writable, DirectMode mode, const std::string& name) {
  OC_CHECK(fd >= 0);
  OC_CHECK(fd_ < 0);
  fd_ = fd;
  if (mode == DirectMode::kOff) {
    why_buffered_ = "buffered by direct=off";
    return {};
  }
  std::string why = why_never_direct(fd);
  if (why.empty()) {
    const int direct = reopen_direct(fd, is_writable);
    if (direct < 0)
      why = direct == -EINVAL ? "O_DIRECT is refused by the filesystem"
                              : base::system_error(direct, "a direct descriptor").message;
    else
      why = why_not_direct(direct);
    direct_fd_ = std::max(direct, -1);
  }
  if (why.empty()) {
    is_direct_refused_ = false;
    why_buffered_ = "O_DIRECT was refused during a transfer: buffered";
    return {};
  }
  why_buffered_ = why + ": buffered";
  if (mode == DirectMode::kOn)
    return Error{EINVAL, "open " + name + " with direct=on: " + why +
                             "; use direct=auto, or another filesystem"};
  return {};
}

Result<DirectMode> direct_mode_of(const StoreUri& uri) {
  static const std::vector<std::string_view> kValues = {"auto", "on", "off"};
  const std::string* const direct = uri.find("direct");
  if (direct == nullptr) return DirectMode::kAuto;
  const auto value = std::find(kValues.begin(), kValues.end(), *direct);
  if (value != kValues.end()) return static_cast<DirectMode>(value - kValues.begin());
  return refuse(uri, "direct=" + *direct + " is unknown" + did_you_mean(*direct, kValues) +
                         ": write " + one_of(kValues));
}

std::string DirectFile::why_buffered() const { return is_direct() ? std::string() : why_buffered_; }

void DirectFile::refuse_direct() { is_direct_refused_.store(true, std::memory_order_relaxed); }

int DirectFile::next_piece(const StoreRequest& request, size_t done_bytes, Piece& piece) {
  OC_CHECK(done_bytes < request.size_bytes);
  OC_ASSERT(fd_ >= 0);
  const size_t left = std::min(request.size_bytes - done_bytes, kPieceBytesMax);
  piece.offset = request.offset + done_bytes;
  piece.is_direct =
      is_direct() && is_direct_aligned(piece.offset, request.bytes + done_bytes, left);
  piece.fd = piece.is_direct ? direct_fd_ : fd_;
  piece.size_bytes = piece.is_direct ? base::round_down(left, kDirectAlignment) : left;
  if (!piece.is_direct || request.is_write) return 0;
  if (cached_.load(std::memory_order_acquire) != nullptr) read_from_cache(piece);
  if (piece.is_direct && is_in_page_cache(piece)) {
    piece.is_direct = false;
    piece.fd = fd_;
  }
  return 0;
}

// All of it. To ask by a read that does not wait (RWF_NOWAIT) would bring in what is not there.
bool DirectFile::is_in_page_cache(const Piece& piece) {
  if (!can_look_.load(std::memory_order_relaxed)) return false;
  const int left = looks_left_.load(std::memory_order_relaxed);
  if (left <= 0 && blind_reads_.fetch_add(1, std::memory_order_relaxed) % kVainLooksMax != 0)
    return false;
  const os::CachestatRange range{piece.offset, piece.size_bytes};
  os::Cachestat pages{};
  if (::syscall(SYS_cachestat, fd_, &range, &pages, 0) != 0) {
    can_look_ = false;
    return false;
  }
  const bool is_there = pages.cached >= piece.size_bytes / base::kSystemPage;
  const int now = is_there ? kVainLooksMax : std::max(left - 1, 0);
  if (now != left) looks_left_.store(now, std::memory_order_relaxed);
  return is_there;
}

// Cuts the piece where what may be in the page cache begins, or ends. REQUIRES: a direct one.
void DirectFile::read_from_cache(Piece& piece) const {
  OC_ASSERT(piece.offset % kDirectAlignment == 0 && piece.size_bytes % kDirectAlignment == 0);
  const uint64_t first = piece.offset / kDirectAlignment;
  const uint64_t end = first + piece.size_bytes / kDirectAlignment;
  const bool is_in_cache = is_cached(first);
  uint64_t stop = first + 1;
  while (stop < end && is_cached(stop) == is_in_cache) ++stop;
  piece.size_bytes = (stop - first) * kDirectAlignment;
  if (!is_in_cache) return;
  piece.is_direct = false;
  piece.fd = fd_;
}

bool DirectFile::is_cached(uint64_t page) const {
  return cached_.load(std::memory_order_acquire)[page % kCachedMax].load(
             std::memory_order_relaxed) == page + 1;
}

void DirectFile::note_cached(uint64_t offset, uint64_t size_bytes) {
  if (!is_direct() || size_bytes == 0) return;
  std::atomic<uint64_t>* table = cached_.load(std::memory_order_acquire);
  if (table == nullptr) {
    auto* const made = new (std::nothrow) std::atomic<uint64_t>[kCachedMax]();
    if (made == nullptr) return;
    if (cached_.compare_exchange_strong(table, made))
      table = made;
    else
      delete[] made;
  }
  const uint64_t first = offset / kDirectAlignment;
  const uint64_t count = (offset + size_bytes - 1) / kDirectAlignment - first + 1;
  for (uint64_t i = count - std::min(count, kCachedMax); i < count; ++i)
    table[(first + i) % kCachedMax].store(first + i + 1, std::memory_order_relaxed);
}

int DirectFile::read(uint64_t offset, std::span<std::byte> into) {
  return carry_out(*this, StoreRequest{offset, into.data(), into.size(), false, 0});
}

int DirectFile::write(uint64_t offset, std::span<const std::byte> from) {
  return carry_out(*this,
                   StoreRequest{offset, const_cast<std::byte*>(from.data()), from.size(), true, 0});
}

unsigned in_flight_max(const StoreTraits& traits, std::span<const StoreRequest> batch) {
  const auto is_write = [](const StoreRequest& r) { return r.is_write; };
  const unsigned reads = traits.read_concurrency;
  const unsigned writes = traits.write_concurrency;
  if (std::none_of(batch.begin(), batch.end(), is_write)) return reads;
  if (std::all_of(batch.begin(), batch.end(), is_write)) return writes;
  if (reads == 0 || writes == 0) return std::max(reads, writes);
  return std::min(reads, writes);
}

void DirectFile::transfer(std::span<StoreRequest> batch, const StoreTraits& traits) {
  carry_out_batch(*this, batch, in_flight_max(traits, batch));
}

int DirectFile::discard(uint64_t offset, uint64_t size_bytes, DiscardMode mode) {
  const auto zero = [this](uint64_t at, uint64_t size) {
    return write_zeros(at, size,
                       [this](uint64_t o, std::span<const std::byte> z) { return write(o, z); });
  };
  return discard_range(offset, size_bytes, zero, [this, mode](uint64_t at, uint64_t size) {
    return free_blocks(fd_, at, size, mode);
  });
}

}  // namespace outcore::store
