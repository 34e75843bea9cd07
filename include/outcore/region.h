// Region: a range of addresses whose bytes live in a store.
//
// A Region owns its mapping: the destructor unmaps it (call unmap() to see errors). Move-only. Its
// runtime must outlive it. Any thread may call any function, except that unmap() must not run at
// the same time as other calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "outcore/metrics.h"
#include "outcore/options.h"
#include "outcore/result.h"

namespace outcore {

class Region {
 public:
  struct Impl;  // of the library
  Region();
  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;
  ~Region();  // unmaps; prints errors on stderr, since it cannot return them

  bool is_mapped() const;
  // First byte of the region; constant until unmap(). Bytes past the end of the store, up to the
  // end of the last system page, read zero; what is written there is dropped, as with mmap.
  std::byte* data() const;
  uint64_t size_bytes() const;
  uint64_t page_bytes() const;
  Access access() const;
  Delivery delivery() const;  // what was chosen; never kAuto
  FrameKind frames() const;   // what was chosen; never kAuto
  bool is_shared() const;     // its pages are in a buffer, with those of other processes
  const std::string& uri() const;

  template <typename T>
  // REQUIRES: size_bytes() is a multiple of sizeof(T). array.h has a checked way.
  std::span<T> as() const;

  // Ranges below are in bytes from data(). They need not be aligned: they are widened to pages.
  // Errors of all functions: EINVAL (the range is outside the region, or the region is not mapped),
  // EPERM (in a forked child, unless the pages are in a buffer: then the first call, or the first
  // touch, makes the region the child's own).

  // Brings the range in and keeps it resident until unpin(). Pins nest. System calls and devices
  // may use pinned memory in every delivery (O_DIRECT, io_uring). Dirty pinned pages are still
  // written back. Errors: ENOMEM (more than the budget can hold; the message gives the smallest
  // that works), and read errors of the store.
  Status pin(uint64_t offset, uint64_t size_bytes);
  // REQUIRES: an earlier pin() of the same range. Error: EINVAL, if one of its pages is not pinned.
  Status unpin(uint64_t offset, uint64_t size_bytes);

  // Learnt starts: begins to bring in, in the background and as far as the budget has room without
  // eviction, what the profile says that an earlier run needed of the range, in the order in which
  // it needed it; and records from now on what is brought in first of the region's store. The
  // profile is a file of Outcore's that need not be there yet. A runtime with the option `learn`
  // does this by itself. Errors: ENOTSUP (the store is not a file, or is mapped privately), EBUSY
  // (it is learnt in another profile), EINVAL (the file is not a profile, or cannot be read),
  // ENOMEM.
  Status learn(const std::string& profile, uint64_t offset, uint64_t size_bytes);
  Status learn(const std::string& profile);  // the whole region
  // Adds what was recorded so far, of all regions of the runtime, to its profiles; the end of the
  // runtime does so by itself, and exit(). Errors: those of the files; EINVAL (a file is there, and
  // no profile); EAGAIN (others have it locked for seconds).
  Status keep_learnt();

  // Starts to bring the range in, and returns at once. A hint: pages for which there is no room are
  // skipped (metric prefetch_dropped).
  Status prefetch(uint64_t offset, uint64_t size_bytes);
  // The same for single pages (UMap, section 3.6): `pages` are page numbers of the region (offset /
  // page_bytes()).
  Status prefetch(std::span<const uint64_t> pages);
  // Brings the range in, and returns when it is there. It may be evicted at any time afterwards:
  // see pin().
  Status prefault(uint64_t offset, uint64_t size_bytes);

  // Tells that the range will soon be written for the first time, as an allocator knows: puts zero
  // pages into memory, many in one step, instead of one fault each. A hint: it takes effect only
  // for pages of 4 KiB, only where the store has no bytes, and only as far as the budget has room
  // without eviction.
  Status prepare(uint64_t offset, uint64_t size_bytes);

  Status advise(uint64_t offset, uint64_t size_bytes, Advice advice);

  // Writes the dirty bytes of the range to the store. Success: the store has every byte that was
  // written before the call. Otherwise returns the first error of the store, with what was
  // attempted. An error of an earlier write-back is reported once, too, except that the store was
  // full (ENOSPC, EDQUOT) if all of the range is stored by now. So does a store that can commit
  // nothing any more (versioned:, after an fsync that failed), each time.
  Status flush(uint64_t offset, uint64_t size_bytes);
  Status flush();
  // flush(), then makes the store durable.
  Status sync();

  // Makes the range read zero, in the region and in the store (as a hole, where the store can).
  // REQUIRES: offset and size are multiples of 4096 (EINVAL); the region is writable (EACCES).
  Status discard(uint64_t offset, uint64_t size_bytes);

  // Enlarges store and region in place: data() stays the same. Errors: EINVAL (beyond
  // reserve_bytes, or smaller than now), EACCES (the region is not read-write).
  Status grow(uint64_t size_bytes);

  // Copy between the region and ordinary memory: like memcpy, but a failed fill is returned as an
  // error instead of a signal. With in-thread delivery, use them around system calls: read() then
  // write(2), and so on. What is not in memory comes in by transfers of many pages, a sixteenth of
  // the budget at a time. After an error the bytes before the page that it names have been copied.
  Status read(uint64_t offset, std::span<std::byte> into) const;
  Status write(uint64_t offset, std::span<const std::byte> from);

  // Makes failed pages absent again, and also pages that read zero because their read failed: the
  // next access tries the store again. Afterwards failed reads no longer count the region as
  // degraded. Error: EBUSY (such a page is pinned).
  Status retry_failed();

  RegionMetrics metrics() const;

  // Flushes, unmaps and frees everything, even after an error; returns the first error. If dirty
  // bytes could not be stored, the region stays mapped and the error says so, unless `force`: then
  // those bytes are lost. The last region that writes a store of kind versioned: (of all objects of
  // its folder) commits, and stays if that fails.
  Status unmap(bool force = false);

 private:
  friend class Runtime;
  friend struct CheckpointAccess;  // of the library
  explicit Region(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

// While one of these lives, what its thread waits for pages in calls is not counted (the metrics
// call_waits and call_wait_ns): for a thread that only helps another one, whose wait for the same
// pages is counted. In one thread; they nest.
class UncountedWaits {
 public:
  UncountedWaits();
  ~UncountedWaits();
  UncountedWaits(const UncountedWaits&) = delete;
  UncountedWaits& operator=(const UncountedWaits&) = delete;
};

template <typename T>
std::span<T> Region::as() const {
  return {reinterpret_cast<T*>(data()), static_cast<size_t>(size_bytes() / sizeof(T))};
}

}  // namespace outcore
