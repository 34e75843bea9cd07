// mmap and related calls. See calls.h.
#include <sys/mman.h>

#include <algorithm>
#include <cstdarg>

#include "core/base/units.h"
#include "run/preload/calls.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/heap.h"
#include "run/preload/own_memory.h"
#include "run/preload/ranges.h"
#include "run/preload/settings.h"
#include "run/preload/window.h"

// The C library's headers declare some parameters as never null, and some calls as noexcept.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wnonnull-compare"
#endif

using outcore::base::kSystemPage;
using outcore::base::round_up;
using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

std::byte* bytes_at(const void* p) { return static_cast<std::byte*>(const_cast<void*>(p)); }

// Keeps a range free that is cut out of a mapping of ours, until something else is mapped there.
void hold_place(std::byte* address, uint64_t size_bytes) {
  real().mmap(address, size_bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

// Ends our mappings in the range. 0 or an errno.
int release(const void* address, size_t size) {
  return or_no_memory(
      [&] {
        return Door::instance().release(bytes_at(address), round_up(size, kSystemPage), hold_place);
      },
      ENOMEM);
}

bool is_aligned(const void* address) {
  return reinterpret_cast<uint64_t>(address) % kSystemPage == 0;
}

// Something else is about to be mapped there: what belongs to the heap becomes the kernel's. 0 or
// an errno.
int give_way(void* address, size_t size) {
  if (!Heap::concerns(address, size)) return 0;
  return or_no_memory([&] { return Heap::instance().give_way(bytes_at(address), size); }, ENOMEM);
}

// nullptr: the kernel shall map it.
void* map_in_heap(size_t size) {
  const int saved_errno = errno;
  void* p = or_no_memory([&] { return Heap::instance().map(size); }, nullptr);
  errno = saved_errno;
  return p;
}

bool is_of_file(int flags) {
  const int type = flags & MAP_TYPE;
  return (flags & MAP_ANONYMOUS) == 0 &&
         (type == MAP_SHARED || type == MAP_PRIVATE || type == MAP_SHARED_VALIDATE);
}

// Maps in the window, if the mapping may become ours and the program leaves the address to us.
// MAP_FAILED: it must not lie there, or it failed, and the caller's call to the kernel gives the
// errno.
void* map_in_window(size_t size, int protection, int flags, int fd, off_t offset) {
  constexpr int kElsewhere = MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_32BIT | MAP_HUGETLB |
                             MAP_GROWSDOWN | MAP_STACK | MAP_SYNC;
  const bool has_copies = (flags & MAP_TYPE) == MAP_PRIVATE && (protection & PROT_WRITE) != 0;
  const bool is_possible = (flags & kElsewhere) == 0 && (protection & PROT_EXEC) == 0 &&
                           !has_copies && protection != PROT_NONE &&
                           is_aligned(reinterpret_cast<void*>(offset));
  const bool is_large = size >= settings().min_bytes || DescriptorTable::file_of(fd) != nullptr;
  if (!Window::is_offered() || !is_possible || !is_large) return MAP_FAILED;
  // Other kinds cannot be taken, and a device may notice that it is mapped twice.
  struct stat about;
  if (::fstat(fd, &about) != 0 || !(S_ISREG(about.st_mode) || S_ISBLK(about.st_mode)))
    return MAP_FAILED;
  Window& window = Window::instance();
  if (!window.prepare()) return MAP_FAILED;
  return window.map(size, protection, flags, fd, offset);
}

// The mapping stays with the kernel, so it is moved elsewhere: there the program's calls on it are
// not trapped. The program does not know its address yet.
void* move_out_of_window(void* p, size_t size, int protection, int flags, int fd, off_t offset) {
  void* const other = real().mmap(nullptr, size, protection, flags, fd, offset);
  if (other == MAP_FAILED) return p;
  real().munmap(p, size);
  return other;
}

}  // namespace

OUTCORE_EXPORT void* mmap(void* address, size_t size, int protection, int flags, int fd,
                          off_t offset) {
  if (is_inside()) return real().mmap(address, size, protection, flags, fd, offset);
  Door& door = Door::instance();
  if (Heap::wants_mapping(address, size, protection, flags, __builtin_return_address(0)))
    if (void* p = map_in_heap(size); p != nullptr) return p;
  if ((flags & MAP_FIXED) != 0 && concerns(address, size)) {
    const auto map_over = [&] {
      return Heap::instance().map_over(bytes_at(address), size, protection, flags);
    };
    if (Heap::concerns(address, size) && or_no_memory(map_over, false)) return address;
    // If the kernel refuses the call, what is there must stay: so it is tried elsewhere first.
    if (reinterpret_cast<uint64_t>(address) % kSystemPage != 0) return errno = EINVAL, MAP_FAILED;
    const int elsewhere = flags & ~(MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_POPULATE | MAP_LOCKED);
    void* trial = real().mmap(nullptr, size, protection, elsewhere, fd, offset);
    if (trial == MAP_FAILED) return MAP_FAILED;
    real().munmap(trial, size);
    int error = release(address, size);
    if (error == 0) error = give_way(address, size);
    if (error != 0) return errno = error, MAP_FAILED;
  }
  // For a child of vfork: hands back a file that is written.
  if (is_of_file(flags)) static_cast<void>(DescriptorTable::file_of(fd));
  const bool is_candidate =
      is_of_file(flags) && fd >= 0 &&
      (size >= settings().min_bytes || Door::is_any_taken() || settings().is_explaining);
  // The kernel must not fill the mapping yet: if it is taken, we do; if not, we may have to store
  // bytes of the file before the kernel reads them.
  const int kernels = is_candidate ? flags & ~MAP_POPULATE : flags;
  void* p = MAP_FAILED;
  if (is_candidate && address == nullptr) p = map_in_window(size, protection, kernels, fd, offset);
  if (p == MAP_FAILED) p = real().mmap(address, size, protection, kernels, fd, offset);
  if (p == MAP_FAILED || !is_candidate) return p;
  const int saved_errno = errno;
  const auto take = [&] {
    return door.take({bytes_at(p), size, protection, flags, fd, static_cast<uint64_t>(offset)});
  };
  const bool is_taken = or_no_memory(take, false);
  if (!is_taken && address == nullptr && Window::covers(p, size))
    p = move_out_of_window(p, size, protection, kernels, fd, offset);
  // Of the pages of a private writable mapping the kernel makes copies at once.
  const bool has_copies = (flags & MAP_TYPE) == MAP_PRIVATE && (protection & PROT_WRITE) != 0;
  if (!is_taken && kernels != flags)
    real().madvise(p, size, has_copies ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
  errno = saved_errno;
  return p;
}
OUTCORE_ALIAS(void*, mmap64, (void*, size_t, int, int, int, off_t), mmap);

OUTCORE_EXPORT int munmap(void* address, size_t size) noexcept {
  if (Heap::concerns(address, size))
    return by_errno([&] { return Heap::instance().unmap(bytes_at(address), size); });
  if (concerns(address, size) && is_aligned(address) && size != 0) {
    const int error = release(address, size);
    if (error != 0) return fail(error);
  }
  return real().munmap(address, size);
}

OUTCORE_EXPORT void* mremap(void* address, size_t old_size, size_t new_size, int flags,
                            ...) noexcept {
  va_list arguments;
  va_start(arguments, flags);
  void* to = (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0 ? va_arg(arguments, void*) : nullptr;
  va_end(arguments);
  const auto from = reinterpret_cast<uint64_t>(address), target = reinterpret_cast<uint64_t>(to);
  const bool is_fixed = (flags & MREMAP_FIXED) != 0;
  const bool overlaps = target < from + round_up(old_size, kSystemPage) &&
                        from < target + round_up(new_size, kSystemPage);
  // A call that the kernel refuses, whatever is mapped, must change nothing.
  const bool is_refused = !is_aligned(address) || new_size == 0 ||
                          (is_fixed && (!is_aligned(to) || overlaps)) ||
                          (flags != 0 && (flags & MREMAP_MAYMOVE) == 0) ||
                          (flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0;
  if (is_refused && !is_inside()) return real().mremap(address, old_size, new_size, flags, to);
  if (is_fixed && concerns(to, new_size))
    if (const int error = release(to, new_size); error != 0) return errno = error, MAP_FAILED;
  if (is_fixed)
    if (const int error = give_way(to, new_size); error != 0) return errno = error, MAP_FAILED;
  if (Heap::has(address) && !is_inside())
    return or_no_memory(
        [&] {
          return Heap::instance().remap(bytes_at(address), old_size, new_size, flags, bytes_at(to));
        },
        MAP_FAILED);
  if (!concerns(address, std::max<size_t>(old_size, 1)))
    return real().mremap(address, old_size, new_size, flags, to);
  return or_no_memory(
      [&] {
        return Door::instance().remap(bytes_at(address), old_size, new_size, flags, bytes_at(to));
      },
      MAP_FAILED);
}

OUTCORE_EXPORT int mprotect(void* address, size_t size, int protection) noexcept {
  if (Heap::concerns(address, size))
    return by_errno([&] { return Heap::instance().protect(bytes_at(address), size, protection); });
  if (!concerns(address, size) || reinterpret_cast<uint64_t>(address) % kSystemPage != 0)
    return real().mprotect(address, size, protection);
  return by_errno([&] {
    return Door::instance().protect(bytes_at(address), round_up(size, kSystemPage), protection);
  });
}

OUTCORE_EXPORT int msync(void* address, size_t size, int flags) {
  const bool is_valid = (flags & ~(MS_SYNC | MS_ASYNC | MS_INVALIDATE)) == 0 && is_aligned(address);
  const auto sync = [&] { return Door::instance().sync(bytes_at(address), size, flags); };
  if (concerns(address, size) && is_valid && by_errno(sync) != 0) return -1;
  return real().msync(address, size, flags);
}

OUTCORE_EXPORT int madvise(void* address, size_t size, int advice) noexcept {
  if (is_kernels_advice(advice))
    if (const int error = leave_to_kernel(address, size, "advice that only the kernel can follow");
        error != 0)
      return fail(error);
  if (Heap::concerns(address, size))
    return by_errno([&] { return Heap::instance().advise(bytes_at(address), size, advice); });
  if (!concerns(address, size) || reinterpret_cast<uint64_t>(address) % kSystemPage != 0)
    return real().madvise(address, size, advice);
  return by_errno([&] {
    return Door::instance().advise(bytes_at(address), round_up(size, kSystemPage), advice);
  });
}

OUTCORE_EXPORT int posix_madvise(void* address, size_t size, int advice) noexcept {
  if (!concerns(address, size)) return real().posix_madvise(address, size, advice);
  // posix_madvise() loses no bytes: in the C library POSIX_MADV_DONTNEED does nothing.
  if (advice == POSIX_MADV_DONTNEED) return 0;
  const int saved_errno = errno;
  const int result = madvise(address, size, advice) == 0 ? 0 : errno;
  errno = saved_errno;
  return result;
}

OUTCORE_EXPORT int mincore(void* address, size_t size, unsigned char* states) noexcept {
  const int result = real().mincore(address, size, states);
  const auto look_up = [&] {
    Door::instance().look_up_residency(bytes_at(address), round_up(size, kSystemPage), states);
  };
  if (result == 0 && concerns(address, size) && !is_ready(look_up)) return fail(EAGAIN);
  return result;
}

namespace {

// The kernel must not lock what we evict: our part is pinned, and the kernel locks the rest.
template <typename Kernels>
int lock(const void* address, size_t size, const Kernels& kernels) {
  if (!concerns(address, size)) return kernels(address, size);
  const uint64_t start =
      outcore::base::round_down(reinterpret_cast<uint64_t>(address), kSystemPage);
  const uint64_t end = round_up(reinterpret_cast<uint64_t>(address) + size, kSystemPage);
  auto* from = reinterpret_cast<const std::byte*>(start);
  return by_errno([&] {
    if (Heap::concerns(from, end - start)) return Heap::instance().lock(from, end - start);
    const int error = Door::instance().lock_range(from, end - start);
    if (error != 0) return error;
    return Door::instance().on_the_rest(from, end - start, [&](const std::byte* a, uint64_t n) {
      return kernels(a, n) == 0 ? 0 : errno;
    });
  });
}

}  // namespace

OUTCORE_EXPORT int mlock(const void* address, size_t size) noexcept {
  return lock(address, size, [](const void* a, size_t n) { return real().mlock(a, n); });
}

OUTCORE_EXPORT int mlock2(const void* address, size_t size, unsigned flags) noexcept {
  return lock(address, size, [&](const void* a, size_t n) { return real().mlock2(a, n, flags); });
}

OUTCORE_EXPORT int munlock(const void* address, size_t size) noexcept {
  const auto unlock = [&] {
    if (Heap::concerns(address, size)) Heap::instance().unlock(bytes_at(address), size);
    if (concerns(address, size))
      Door::instance().unlock_range(bytes_at(address), round_up(size, kSystemPage));
  };
  if (concerns(address, size) && !OwnMemory::has_room(OwnMemory::kCallBytes)) return fail(ENOMEM);
  return is_ready(unlock) ? real().munlock(address, size) : -1;
}

OUTCORE_EXPORT int munlockall() noexcept {
  const auto unlock = [] {
    Door::instance().unlock_range(nullptr, UINT64_MAX / 2);
    Heap::instance().unlock_all();
  };
  if (Door::is_any_taken() && !is_inside() && !is_ready(unlock)) return -1;
  return real().munlockall();
}

OUTCORE_EXPORT int mlockall(int flags) noexcept {
  const int result = real().mlockall(flags);
  const auto undo = [] {
    Door::instance().undo_locks();
    Heap::instance().undo_locks();
  };
  if (result == 0 && Door::is_any_taken() && !is_ready(undo)) return -1;
  return result;
}
