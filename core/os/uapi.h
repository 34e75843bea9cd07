// Uapi: kernel interfaces that are newer than the headers we build with (Debian 12 has those of
// Linux 6.1).
//
// Names are our own, so that they do not collide with newer headers; values and layouts are the
// kernel's, and never change.
#pragma once

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <cstdint>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

namespace outcore::os {

// Features of UFFDIO_API.
inline constexpr uint64_t kUffdFeatureWpUnpopulated = uint64_t{1} << 13;  // since 6.4
inline constexpr uint64_t kUffdFeaturePoison = uint64_t{1} << 14;         // since 6.6
inline constexpr uint64_t kUffdFeatureWpAsync = uint64_t{1} << 15;        // since 6.7
inline constexpr uint64_t kUffdFeatureMove = uint64_t{1} << 16;           // since 6.8

// UFFDIO_CONTINUE, mode: the page is shown write-protected. Since 6.4.
inline constexpr uint64_t kUffdioContinueModeWp = uint64_t{1} << 1;

// UFFDIO_MOVE: moves a page from one address to another, without a copy. Since 6.8.
struct UffdMove {
  uint64_t dst, src, len, mode;
  int64_t moved;  // bytes done, or -errno
};
#define OC_UFFDIO_MOVE _IOWR(UFFDIO, 0x05, ::outcore::os::UffdMove)

// UFFDIO_POISON: makes a touch of the range raise SIGBUS, or EFAULT in system calls. Since 6.6.
struct UffdPoison {
  uffdio_range range;
  uint64_t mode;    // UFFDIO_POISON_MODE_DONTWAKE = 1
  int64_t updated;  // bytes done, or -errno
};
#define OC_UFFDIO_POISON _IOWR(UFFDIO, 0x08, ::outcore::os::UffdPoison)

// cachestat(): how much of a range of a file is in the page cache. Since 6.5.
struct CachestatRange {
  uint64_t offset, size_bytes;  // 0 bytes: to the end
};
struct Cachestat {
  uint64_t cached, dirty, being_written, evicted, evicted_lately;  // pages
};

// PAGEMAP_SCAN, on /proc/self/pagemap: reports which pages of a range have which properties. Since
// 6.7.
struct PageRegion {
  uint64_t start, end, categories;
};
struct PagemapScan {
  uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
  uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define OC_PAGEMAP_SCAN _IOWR('f', 16, ::outcore::os::PagemapScan)

// Flags of PAGEMAP_SCAN: write-protect the reported pages in the same step; refuse (EPERM) pages
// that are not under WP_ASYNC.
inline constexpr uint64_t kPmScanWpMatching = 1;
inline constexpr uint64_t kPmScanCheckWpAsync = 2;
// Categories of PAGEMAP_SCAN.
inline constexpr uint64_t kPageIsWpAllowed = 1;
inline constexpr uint64_t kPageIsWritten = 2;
inline constexpr uint64_t kPageIsFile = 4;
inline constexpr uint64_t kPageIsPresent = 8;
inline constexpr uint64_t kPageIsSwapped = 16;

}  // namespace outcore::os
