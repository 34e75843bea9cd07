// Calls on ranges of memory that only the kernel can carry out, and process_madvise. See calls.h.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "core/base/units.h"
#include "run/preload/as_program.h"
#include "run/preload/bounce.h"
#include "run/preload/calls.h"
#include "run/preload/heap.h"
#include "run/preload/ranges.h"

using outcore::base::kSystemPage;
using outcore::base::round_down;
using outcore::base::round_up;
using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

// Newer than the headers of Debian 12.
constexpr int kDontNeedLocked = 24, kSoftOffline = 101, kGuardInstall = 102, kGuardRemove = 103;

bool is_aligned(const void* address) {
  return reinterpret_cast<uint64_t>(address) % kSystemPage == 0;
}

}  // namespace

namespace outcore::preload {

bool is_kernels_advice(int advice) {
  switch (advice) {
    case MADV_DONTFORK:  // a device may have the memory from now on (RDMA asks for this)
    case MADV_WIPEONFORK:
    case MADV_HWPOISON:
    case kSoftOffline:
    case kDontNeedLocked:
    case kGuardInstall:
    case kGuardRemove:
      return true;
    default:
      return false;
  }
}

int leave_to_kernel(const void* address, size_t size_bytes, const char* why) {
  if (!is_aligned(address) || size_bytes == 0 || !concerns(address, size_bytes)) return 0;
  const auto* from = static_cast<const std::byte*>(address);
  if (size_bytes > UINT64_MAX - reinterpret_cast<uint64_t>(from) - kSystemPage) return 0;
  size_bytes = round_up(size_bytes, kSystemPage);
  return or_no_memory(
      [&] {
        const int error =
            Heap::concerns(address, size_bytes) ? Heap::instance().leave(from, size_bytes) : 0;
        return error != 0 ? error : Door::instance().leave(from, size_bytes, why);
      },
      ENOMEM);
}

int leave_around(const void* address, size_t size_bytes, const char* why) {
  const auto at = reinterpret_cast<uint64_t>(address);
  const uint64_t start = round_down(at, kSystemPage);
  return leave_to_kernel(reinterpret_cast<const void*>(start), size_bytes + (at - start), why);
}

bool is_heap_without_messages(const void* address, size_t size_bytes) {
  return needs_bounce() && Heap::concerns(address, size_bytes) && !Heap::instance().has_messages();
}

int leave_stack(const void* stack, size_t size_bytes) {
  constexpr const char* kWhy = "a stack lies there";
  if (!needs_bounce() || is_borrowing()) return 0;
  if (!Heap::concerns(stack, size_bytes)) return leave_around(stack, size_bytes, kWhy);
  if (Heap::instance().has_messages()) return 0;
  // What the kernel gets is copied, and at both ends other threads may write what lies beside the
  // stack: pages that are not the stack's alone stay, and are there when the thread begins.
  const auto first = reinterpret_cast<uint64_t>(stack), end = first + size_bytes;
  const uint64_t bytes = Heap::instance().page_bytes();
  const uint64_t inner = round_up(first, bytes), inner_end = round_down(end, bytes);
  for (const uint64_t at : {first, end - 1}) {
    const auto* const edge = reinterpret_cast<const std::atomic<char>*>(at);
    if (Heap::concerns(edge, 1)) static_cast<void>(edge->load(std::memory_order_relaxed));
  }
  if (inner >= inner_end) return 0;
  return leave_to_kernel(reinterpret_cast<const void*>(inner), inner_end - inner, kWhy);
}

}  // namespace outcore::preload

OUTCORE_EXPORT int pkey_mprotect(void* address, size_t size, int protection, int key) noexcept {
  if (key == -1) return as_program::mprotect(address, size, protection);
  if (const int error = leave_to_kernel(address, size, "it gets a protection key"); error != 0)
    return fail(error);
  return real().pkey_mprotect(address, size, protection, key);
}

OUTCORE_EXPORT int mseal(void* address, size_t size, unsigned long flags) noexcept {
  constexpr long kMseal = 462;
  if (const int error = leave_to_kernel(address, size, "it is sealed"); error != 0)
    return fail(error);
  return static_cast<int>(real().syscall(kMseal, address, size, flags));
}

OUTCORE_EXPORT int remap_file_pages(void* address, size_t size, int protection, size_t page,
                                    int flags) noexcept {
  if (Heap::concerns(address, size)) return fail(EINVAL);  // as for all memory that is not shared
  if (const int error = leave_to_kernel(address, size, "its pages are put in another order");
      error != 0)
    return fail(error);
  return real().remap_file_pages(address, size, protection, page, flags);
}

namespace {

bool is_of_this_process(int pidfd) {
  char line[128], path[64];
  std::snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
  const Inside inside;
  FILE* about = real().fopen(path, "re");
  int pid = -1;
  while (about != nullptr && std::fgets(line, sizeof line, about) != nullptr)
    if (std::sscanf(line, "Pid: %d", &pid) == 1) break;
  if (about != nullptr) real().fclose(about);
  return pid == ::getpid();
}

}  // namespace

OUTCORE_EXPORT ssize_t process_madvise(int pidfd, const iovec* list, size_t count, int advice,
                                       unsigned flags) noexcept {
  const bool is_any_ours = Door::is_any_taken() && !is_inside() && list != nullptr &&
                           count <= IOV_MAX && std::any_of(list, list + count, [](const iovec& v) {
                             return concerns(v.iov_base, v.iov_len);
                           });
  if (!is_any_ours || flags != 0 || !is_of_this_process(pidfd))
    return real().process_madvise(pidfd, list, count, advice, flags);
  size_t done = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool is_ours = concerns(list[i].iov_base, list[i].iov_len);
    const ssize_t one = !is_ours ? real().process_madvise(pidfd, list + i, 1, advice, 0)
                        : as_program::madvise(list[i].iov_base, list[i].iov_len, advice) == 0
                            ? static_cast<ssize_t>(list[i].iov_len)
                            : -1;
    if (one < 0) return done != 0 ? static_cast<ssize_t>(done) : -1;
    done += static_cast<size_t>(one);
  }
  return static_cast<ssize_t>(done);
}
