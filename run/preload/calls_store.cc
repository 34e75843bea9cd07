// sync and related calls, lseek, and calls that clone or discard bytes of a file: what was written
// through mappings must be in the file before them. See calls.h.
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <optional>

#include "core/base/units.h"
#include "core/os/signal_delivery.h"
#include "run/preload/calls.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/held_position.h"
#include "run/preload/own_descriptors.h"
#include "run/preload/ranges.h"
#include "run/preload/window.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

constexpr uint64_t kToTheEnd = UINT64_MAX / 2;

TakenFile* taken(int fd) { return is_plain() ? nullptr : DescriptorTable::file_of(fd); }

bool is_stored(int fd, uint64_t offset = 0, uint64_t size_bytes = kToTheEnd) {
  TakenFile* file = taken(fd);
  if (file == nullptr) return true;
  return or_no_memory([&] { return Door::instance().before_read(*file, offset, size_bytes) == 0; },
                      false);
}

// Stores what was written to the files on that device, or to all. 0 or an errno.
int store_files(const dev_t* device) {
  return or_no_memory([&] { return Door::instance().store_files(device); }, ENOMEM);
}

}  // namespace

OUTCORE_EXPORT void sync() noexcept {
  if (!is_plain()) static_cast<void>(store_files(nullptr));
  real().sync();
}

OUTCORE_EXPORT int syncfs(int fd) noexcept {
  struct stat about;
  int error = 0;
  if (!is_plain() && ::fstat(fd, &about) == 0) error = store_files(&about.st_dev);
  const int result = real().syncfs(fd);
  return result == 0 && error != 0 ? fail(error) : result;
}

OUTCORE_EXPORT int sync_file_range(int fd, off64_t at, off64_t size, unsigned flags) {
  // Zero means to the end of the file.
  const uint64_t bytes = size == 0 ? kToTheEnd : static_cast<uint64_t>(size);
  const bool is_sane = at >= 0 && size >= 0;
  if (is_sane && !is_stored(fd, static_cast<uint64_t>(at), bytes)) return fail(EIO);
  return real().sync_file_range(fd, at, size, flags);
}

OUTCORE_EXPORT off_t lseek(int fd, off_t at, int whence) noexcept {
  // Only the filesystem knows where the file has bytes, so all bytes are stored first.
  if ((whence == SEEK_DATA || whence == SEEK_HOLE) && !is_stored(fd)) return fail(EIO);
  std::optional<HeldPosition> held;
  if (Door::is_any_taken() && !is_inside())
    if (TakenFile* file = DescriptorTable::file_of(fd); file != nullptr && file->is_writable)
      held.emplace(*file);
  return real().lseek(fd, at, whence);
}
OUTCORE_ALIAS(off_t, lseek64, (int, off_t, int) noexcept, lseek);

namespace {

using Call = std::function<int()>;

// Makes `call`, which changes these bytes of the file.
int change(int fd, uint64_t offset, uint64_t size_bytes, const Call& call) {
  TakenFile* file = taken(fd);
  if (file == nullptr) return call();
  return change_file(
      *file, [offset] { return offset; }, size_bytes, call);
}

int clone(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size_bytes,
          const Call& call) {
  if (size_bytes == 0) size_bytes = kToTheEnd;
  return is_stored(from, from_at, size_bytes) ? change(to, to_at, size_bytes, call) : fail(EIO);
}

// Equal bytes of files get one place on the device. No byte changes, so it is enough to store them.
int deduplicate(int from, const file_dedupe_range* all, const Call& call) {
  bool is_done = is_stored(from);
  for (unsigned i = 0; all != nullptr && i < all->dest_count; ++i)
    is_done = is_stored(static_cast<int>(all->info[i].dest_fd)) && is_done;
  return is_done ? call() : fail(EIO);
}

// Whether the request reserves, frees or exchanges blocks of a file, by the old numbers of XFS,
// which other filesystems know, too.
bool moves_blocks(unsigned long request) {
  if (_IOC_TYPE(request) != 'X') return false;
  switch (_IOC_NR(request)) {
    case 10:   // ALLOCSP
    case 11:   // FREESP
    case 36:   // ALLOCSP64
    case 37:   // FREESP64
    case 40:   // RESVSP
    case 41:   // UNRESVSP
    case 42:   // RESVSP64
    case 43:   // UNRESVSP64
    case 57:   // ZERO_RANGE
    case 109:  // SWAPEXT
    case 129:  // EXCHANGE_RANGE
      return true;
    default:
      return false;
  }
}

// Makes `call`, which changes a range of a block device: its offset and size, as for BLKDISCARD.
int change_device(int fd, const uint64_t* range, const Call& call) {
  return range == nullptr ? call() : change(fd, range[0], range[1], call);
}

int ioctl_by(int fd, unsigned long request, void* argument, const Call& call) {
  switch (request) {
    case FICLONE:
      return clone(static_cast<int>(reinterpret_cast<intptr_t>(argument)), 0, fd, 0, 0, call);
    case FICLONERANGE: {
      const auto* range = static_cast<const file_clone_range*>(argument);
      if (range == nullptr) return call();
      return clone(static_cast<int>(range->src_fd), range->src_offset, fd, range->dest_offset,
                   range->src_length, call);
    }
    case FIDEDUPERANGE:
      return deduplicate(fd, static_cast<const file_dedupe_range*>(argument), call);
    case BLKDISCARD:
    case BLKSECDISCARD:
    case BLKZEROOUT:
      return change_device(fd, static_cast<const uint64_t*>(argument), call);
    case FS_IOC_FIEMAP:
    case FIBMAP:
      return is_stored(fd) ? call() : fail(EIO);
    case FIFREEZE:  // a snapshot of a filesystem must have all bytes
    case BTRFS_IOC_SNAP_CREATE:
    case BTRFS_IOC_SNAP_CREATE_V2:
      return store_files(nullptr) == 0 ? call() : fail(EIO);
    case UFFDIO_REGISTER: {
      // Memory whose faults the program answers itself cannot be ours, too.
      const auto* asked = static_cast<const uffdio_register*>(argument);
      if (asked == nullptr) return call();
      const int error = leave_to_kernel(reinterpret_cast<void*>(asked->range.start),
                                        asked->range.len, "the program registers a userfaultfd");
      return error == 0 ? call() : fail(error);
    }
    default:
      break;
  }
  TakenFile* file = moves_blocks(request) ? taken(fd) : nullptr;
  const auto leave = [&] {
    return Door::instance().leave_to_change(*file, "its blocks are moved (ioctl)");
  };
  if (file != nullptr && prepare(leave) != 0) return -1;
  return call();
}

}  // namespace

namespace {

// The structure of a request may have pointers, which no filter sees. An absent page behind one of
// them would be an error, so managed memory that they point to is handed back to the kernel.
[[gnu::noinline]] void leave_what_is_named(unsigned long request, const void* argument) {
  constexpr size_t kBytesLeast = 64;  // older requests do not say how large their structure is
  constexpr unsigned kOfTerminals = 'T';
  uint64_t words[512];
  const size_t told = _IOC_SIZE(request);
  // Requests for terminals, also FIONREAD and similar ones, pass a number or its address.
  if (told == 0 && _IOC_TYPE(request) == kOfTerminals) return;
  const auto start = reinterpret_cast<uintptr_t>(argument);
  if (start < outcore::base::kSystemPage || start % sizeof *words != 0) return;  // it is a number
  const size_t to_end = outcore::base::kSystemPage - start % outcore::base::kSystemPage;
  const size_t bytes =
      told != 0 ? std::min(told, sizeof words) : std::min<size_t>(kBytesLeast, to_end);
  if (!outcore::os::copy_or_fail(words, argument, bytes)) return;
  for (size_t i = 0; i < bytes / sizeof *words; ++i) {
    const void* const named = reinterpret_cast<const void*>(words[i]);
    if (!Window::covers(named, 1) || !concerns(named, 1)) continue;
    const void* const page =
        reinterpret_cast<const void*>(words[i] & ~(outcore::base::kSystemPage - 1));
    static_cast<void>(
        leave_to_kernel(page, outcore::base::kSystemPage, "a request of a device names it"));
  }
}

}  // namespace

OUTCORE_EXPORT int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (!is_inside() && OwnDescriptors::has(fd)) return fail(EBADF);
  if (is_plain()) return real().ioctl(fd, request, argument);
  if (Window::is_ready() && !is_borrowing()) leave_what_is_named(request, argument);
  const auto call = [&] { return real().ioctl(fd, request, argument); };
  return or_no_memory([&] { return ioctl_by(fd, request, argument, call); }, -1);
}
