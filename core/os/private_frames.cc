#include "core/os/private_frames.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/memory_advice.h"
#include "core/os/uapi.h"

namespace outcore::os {
namespace {

// The program may write while a flush reads; what it writes then is written back again later.
// ThreadSanitizer would report a race, so the copy is hidden from it.
#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize("thread"))) void copy_while_written(const std::byte* from,
                                                               std::byte* into, uint64_t bytes) {
  const auto* words = reinterpret_cast<const volatile uint64_t*>(from);  // banned-ok: no memcpy
  for (uint64_t i = 0; i < bytes / 8; ++i) reinterpret_cast<uint64_t*>(into)[i] = words[i];
}
#else
void copy_while_written(const std::byte* from, std::byte* into, uint64_t bytes) {
  std::memcpy(into, from, bytes);
}
#endif

}  // namespace

std::unique_ptr<Frames> PrivateFrames::make(const FaultSource& source) {
  return std::unique_ptr<Frames>(new PrivateFrames(source));
}

Status PrivateFrames::attach(const Piece& piece) {
  if (const int result = map(piece); result != 0)
    return base::system_error(result, "map frames and watch them", "raise vm.max_map_count");
  return {};
}

int PrivateFrames::map(const Piece& piece) {
  OC_CHECK(piece.size_bytes % base::kSystemPage == 0);
  void* p = ::mmap(piece.address, piece.size_bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (p == MAP_FAILED) return -errno;
  unlock_range(piece);  // after mlockall(MCL_FUTURE) no page could be evicted
  ::madvise(p, piece.size_bytes, MADV_NOHUGEPAGE);
  ::madvise(p, piece.size_bytes, MADV_DONTDUMP);
  if (::madvise(p, piece.size_bytes, MADV_DONTFORK) != 0) return -errno;
  const uint64_t mode =
      UFFDIO_REGISTER_MODE_MISSING | (piece.is_writable ? uint64_t{UFFDIO_REGISTER_MODE_WP} : 0);
  const int registered = register_range(source_, piece.address, piece.size_bytes, mode);
  if (registered != 0) return registered;
  const int protection = piece.is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
  return ::mprotect(p, piece.size_bytes, protection) == 0 ? 0 : -errno;
}

int PrivateFrames::install(const Piece& piece, const std::byte* bytes, bool is_written) {
  return copy_in(source_, piece.address, bytes, piece.size_bytes, piece.is_writable && !is_written);
}

int PrivateFrames::install_zeros(const Piece& piece, bool is_written) {
  // If the page were protected by a second call, another thread could write in between; so a
  // writable view gets a copy of zeros.
  if (!piece.is_writable) return zero_in(source_, piece.address, piece.size_bytes);
  return copy_zeros_in(source_, piece.address, piece.size_bytes, !is_written);
}

// Views that only read cannot be written, so other memory takes its place.
int PrivateFrames::overwrite(const Piece& piece, const std::byte* bytes) {
  OC_CHECK(piece.address != nullptr && !piece.is_writable);
  if (const int result = free({&piece, 1}); result != 0) return result;
  return install(piece, bytes, false);
}

int PrivateFrames::deposit(uint64_t, std::span<const std::byte>) {
  OC_CHECK(false && "private frames hold only what a view shows");
  return -EINVAL;
}

int PrivateFrames::show(const Piece&, const SubpageSet&) {
  OC_CHECK(false && "private frames hold only what a view shows");
  return -EINVAL;
}

int PrivateFrames::allow_write(const Piece& piece) {
  return write_protect(source_, piece.address, piece.size_bytes, false);
}

// A system page counts as written if it is present or swapped, and not write-protected: bits 63, 62
// and 57 of /proc/self/pagemap (since 5.13).
int PrivateFrames::collect(const Piece& piece, bool clear, SubpageSet* written) {
  if (!piece.is_writable) return 0;
  if (piece.size_bytes == base::kSystemPage) {  // the caller knows that something was written
    written->add(piece.first_subpage);
    return clear ? write_protect(source_, piece.address, piece.size_bytes, true) : 0;
  }
  constexpr uint64_t kPresentOrSwapped = uint64_t{3} << 62, kProtected = uint64_t{1} << 57;
  constexpr size_t kEntries = 64;  // the array is on a signal stack
  uint64_t entry[kEntries];
  SubpageSet found;
  const uint64_t pages = piece.size_bytes / base::kSystemPage;
  OC_CHECK(piece.first_subpage + pages <= SubpageSet::kCount);
  const uint64_t first_page = reinterpret_cast<uint64_t>(piece.address) / base::kSystemPage;
  for (uint64_t at = 0; at < pages;) {
    const size_t n = pages - at < kEntries ? pages - at : kEntries;
    const ssize_t got = ::pread(source_.pagemap, entry, n * sizeof entry[0],
                                static_cast<off_t>((first_page + at) * sizeof entry[0]));
    if (got < 0 && errno == EINTR) continue;
    if (got < static_cast<ssize_t>(sizeof entry[0])) return got < 0 ? -errno : -EIO;
    const uint64_t entries = static_cast<uint64_t>(got) / sizeof entry[0];
    OC_CHECK(entries <= n);
    for (uint64_t i = 0; i < entries; ++i)
      if ((entry[i] & kPresentOrSwapped) != 0 && (entry[i] & kProtected) == 0)
        found.add(piece.first_subpage + at + i);
    at += entries;
  }
  if (clear)
    if (const int r = set_protection(piece, found, true); r != 0) return r;
  const uint64_t end = piece.first_subpage + pages;
  for (uint64_t first = 0, last = piece.first_subpage; found.next_run(last, end, &first, &last);)
    written->add_range(first, last);
  return 0;
}

int PrivateFrames::set_protection(const Piece& piece, const SubpageSet& set, bool is_protected) {
  const uint64_t begin = piece.first_subpage, end = begin + piece.size_bytes / base::kSystemPage;
  OC_CHECK(end <= SubpageSet::kCount);
  for (uint64_t first = 0, last = begin; set.next_run(last, end, &first, &last);) {
    const int r = write_protect(source_, piece.address + (first - begin) * base::kSystemPage,
                                (last - first) * base::kSystemPage, is_protected);
    if (r != 0) return r;
  }
  return 0;
}

int PrivateFrames::restore(const Piece& piece, const SubpageSet& written) {
  return set_protection(piece, written, false);
}

int PrivateFrames::copy_out(const Piece& piece, std::byte* into) {
  OC_CHECK(piece.address != nullptr);
  OC_ASSERT(piece.size_bytes % base::kSystemPage == 0);
  copy_while_written(piece.address, into, piece.size_bytes);
  return 0;
}

int PrivateFrames::free(std::span<const Piece> pieces) {
  return advise_all(pieces, MADV_DONTNEED, source_.has_batched_advice);
}

int PrivateFrames::forget_poison(const Piece& piece) {
  if (source_.has_poison) return advise_all({&piece, 1}, MADV_DONTNEED, false);
  return source_.nothing >= 0 ? map(piece) : 0;
}

void PrivateFrames::wake(const Piece& piece) {
  wake_range(source_, piece.address, piece.size_bytes);
}

}  // namespace outcore::os
