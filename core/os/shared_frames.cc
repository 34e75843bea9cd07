#include "core/os/shared_frames.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/address_space.h"
#include "core/os/file_calls.h"
#include "core/os/memory_advice.h"
#include "core/os/memory_file.h"
#include "core/os/parents_descriptors.h"
#include "core/os/uapi.h"

namespace outcore::os {
namespace {

// Of the written system pages of a piece, by runs.
PagemapScan scan_of(const Piece& piece, std::span<PageRegion> into) {
  PagemapScan scan{};
  scan.size = sizeof scan;
  scan.start = reinterpret_cast<uint64_t>(piece.address);
  scan.end = scan.start + piece.size_bytes;
  scan.vec = reinterpret_cast<uint64_t>(into.data());
  scan.vec_len = into.size();
  scan.category_mask = kPageIsWritten;
  scan.return_mask = kPageIsWritten;
  return scan;
}

// How many runs it found, or -errno.
int carry_out(int pagemap, PagemapScan* scan) {
  while (true) {
    const int found = ::ioctl(pagemap, OC_PAGEMAP_SCAN, scan);
    if (found >= 0) return found;
    if (errno != EINTR && errno != EAGAIN) return -errno;
  }
}

}  // namespace

Result<std::unique_ptr<Frames>> SharedFrames::make(const FaultSource& source, uint64_t size_bytes) {
  Result<int> memfd = make_memory_file(size_bytes);
  if (!memfd) return memfd.error();
  std::unique_ptr<Frames> frames(new (std::nothrow) SharedFrames(source, memfd.value()));
  if (frames != nullptr) return frames;
  ParentsDescriptors::close(memfd.value());
  return Error{ENOMEM, "make frames: no memory"};
}

SharedFrames::~SharedFrames() { ParentsDescriptors::close(memfd_); }

Status SharedFrames::attach(const Piece& piece) {
  if (const int result = map(piece); result != 0)
    return base::system_error(result, "map frames and watch them", "raise vm.max_map_count");
  return {};
}

// Maps the piece at other addresses and moves the mapping: an event thread reads the event, and the
// registration moves along.
Status SharedFrames::replace(const Piece& piece) {
  if (!source_.is_messages) return attach(piece);
  Result<std::byte*> elsewhere = reserve_addresses(piece.size_bytes, base::kSystemPage);
  if (!elsewhere) return elsewhere.error();
  Piece made = piece;
  made.address = elsewhere.value();
  Status status = attach(made);
  if (status.ok() && ::mremap(made.address, made.size_bytes, made.size_bytes,
                              MREMAP_MAYMOVE | MREMAP_FIXED, piece.address) == MAP_FAILED)
    status = base::system_error(errno, "replace frames", "raise vm.max_map_count");
  if (!status.ok()) release_addresses(made.address, made.size_bytes);
  return status;
}

int SharedFrames::map(const Piece& piece) {
  OC_CHECK(piece.size_bytes % base::kSystemPage == 0);
  if (const int result = map_memory_file(memfd_, piece); result != 0) return result;
  const int registered = register_range(
      source_, piece.address, piece.size_bytes,
      UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP);
  if (registered != 0) return registered;
  const int protection = piece.is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
  return ::mprotect(piece.address, piece.size_bytes, protection) == 0 ? 0 : -errno;
}

int SharedFrames::resize(uint64_t size_bytes) { return set_size(memfd_, size_bytes); }

int SharedFrames::install(const Piece& piece, const std::byte* bytes, bool is_written) {
  return copy_in(source_, piece.address, bytes, piece.size_bytes, !is_written);
}

int SharedFrames::install_zeros(const Piece& piece, bool is_written) {
  return copy_zeros_in(source_, piece.address, piece.size_bytes, !is_written);
}

int SharedFrames::deposit(uint64_t offset, std::span<const std::byte> bytes) {
  OC_ASSERT(offset % base::kSystemPage == 0);
  return write_all(memfd_, offset, bytes);
}

int SharedFrames::show(const Piece& piece, const SubpageSet& written) {
  const uint64_t begin = piece.first_subpage, end = begin + piece.size_bytes / base::kSystemPage;
  for (uint64_t at = begin; at < end;) {
    OC_CHECK(at >= begin);
    uint64_t first = end, last = end;
    if (!written.next_run(at, end, &first, &last)) first = last = end;
    OC_CHECK(first >= at);
    OC_CHECK(last <= end);
    for (const bool is_written : {false, true}) {
      const uint64_t from = is_written ? first : at, to = is_written ? last : first;
      if (from == to) continue;
      const int r = continue_in(source_, piece.address + (from - begin) * base::kSystemPage,
                                (to - from) * base::kSystemPage, !is_written);
      if (r != 0) return r;
    }
    at = last;
  }
  return 0;
}

int SharedFrames::allow_write(const Piece& piece) {
  return write_protect(source_, piece.address, piece.size_bytes, false);
}

int SharedFrames::unmap(std::span<const Piece> pieces) {
  for (size_t i = 1; i < pieces.size(); ++i)
    OC_ASSERT(pieces[i - 1].address + pieces[i - 1].size_bytes <= pieces[i].address);
  return advise_all(pieces, MADV_DONTNEED, source_.has_batched_advice);
}

int SharedFrames::collect(const Piece& piece, bool clear, SubpageSet* written) {
  PageRegion region[32];
  PagemapScan scan = scan_of(piece, region);
  scan.flags = clear ? kPmScanWpMatching : 0;
  const uint64_t base = scan.start;
  while (scan.start < scan.end) {
    const int found = carry_out(source_.pagemap, &scan);
    if (found < 0) return found;
    for (int i = 0; i < found; ++i)
      written->add_range(piece.first_subpage + (region[i].start - base) / base::kSystemPage,
                         piece.first_subpage + (region[i].end - base) / base::kSystemPage);
    if (scan.walk_end <= scan.start) break;
    scan.start = scan.walk_end;
  }
  return 0;
}

int SharedFrames::find_written(const Piece& piece, std::span<WrittenRun> runs,
                               uint64_t* scanned_bytes) {
  constexpr uint64_t kRegions = 512;  // the kernel collects this many at a time
  PageRegion region[kRegions];
  PagemapScan scan = scan_of(piece, region);
  scan.vec_len = runs.size() < kRegions ? runs.size() : kRegions;
  const uint64_t base = scan.start;
  const int found = carry_out(source_.pagemap, &scan);
  if (found < 0) return found;
  OC_CHECK(static_cast<uint64_t>(found) <= scan.vec_len);
  for (int i = 0; i < found; ++i)
    runs[static_cast<size_t>(i)] = {piece.offset + (region[i].start - base),
                                    piece.offset + (region[i].end - base)};
  OC_ASSERT(scan.walk_end <= scan.end);
  *scanned_bytes = scan.walk_end <= base ? piece.size_bytes : scan.walk_end - base;
  return found;
}

int SharedFrames::restore(const Piece& piece, const SubpageSet& written) {
  const uint64_t begin = piece.first_subpage, end = begin + piece.size_bytes / base::kSystemPage;
  for (uint64_t first = 0, last = begin; written.next_run(last, end, &first, &last);) {
    const int r = write_protect(source_, piece.address + (first - begin) * base::kSystemPage,
                                (last - first) * base::kSystemPage, false);
    if (r != 0) return r;
  }
  return 0;
}

int SharedFrames::copy_out(const Piece& piece, std::byte* into) {
  return read_all(memfd_, piece.offset, {into, piece.size_bytes});
}

bool SharedFrames::holds(uint64_t offset) {
  OC_ASSERT(offset % base::kSystemPage == 0);
  const auto at = static_cast<off_t>(offset);
  return ::lseek(memfd_, at, SEEK_DATA) == at;
}

int SharedFrames::free(std::span<const Piece> pieces) { return punch_all(memfd_, pieces); }

int SharedFrames::forget_poison(const Piece& piece) {
  if (source_.has_poison) return advise_all({&piece, 1}, MADV_DONTNEED, false);
  return source_.nothing >= 0 ? map(piece) : 0;
}

void SharedFrames::wake(const Piece& piece) {
  wake_range(source_, piece.address, piece.size_bytes);
}

}  // namespace outcore::os
