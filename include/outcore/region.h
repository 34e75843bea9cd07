// Region: a range of addresses whose bytes live in a store.
//
// A Region is a handle that owns the mapping: destroying it unmaps (use unmap() to see the error).
// Move-only. Its runtime must outlive it. Any thread may call anything but unmap(), which must not
// race with other calls.
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
  ~Region();  // unmaps; an error is printed on stderr, since nobody can return it

  bool is_mapped() const;
  // First byte of the region. Changes by nothing but unmap(). Bytes past the end of the store, up
  // to the end of the last system page, read zero; what is written there is dropped, as with mmap.
  std::byte* data() const;
  uint64_t size_bytes() const;
  uint64_t page_bytes() const;
  Access access() const;
  Delivery delivery() const;  // what was chosen; never kAuto
  FrameKind frames() const;   // what was chosen; never kAuto
  const std::string& uri() const;

  template <typename T>
  std::span<T> as()
      const;  // REQUIRES: size_bytes() is a multiple of sizeof(T). See array.h for the checked way.

  // Ranges below are in bytes from data(), and may be anything inside the region: they are widened
  // to pages. Errors of all: EINVAL (range outside the region, region not mapped), EPERM (in a
  // forked child).

  // Brings the range in and keeps it resident until unpin(); pins nest. System calls and devices
  // may use pinned memory in every delivery (O_DIRECT, io_uring). Dirty pinned pages are still
  // written back. Errors: ENOMEM (more than the budget can hold, with the least that would do), and
  // the store's read error.
  Status pin(uint64_t offset, uint64_t size_bytes);
  // REQUIRES: an earlier pin() of the same range. EINVAL if a page of it is not pinned.
  Status unpin(uint64_t offset, uint64_t size_bytes);

  // Starts to bring pages in, and returns at once. A hint: what does not fit is dropped (metric
  // prefetch_dropped).
  Status prefetch(uint64_t offset, uint64_t size_bytes);
  // Irregular prefetch (UMap, section 3.6): `pages` are page numbers of the region (offset /
  // page_bytes()).
  Status prefetch(std::span<const uint64_t> pages);
  // Brings the range in, and returns when it is there. Nothing keeps it there: see pin().
  Status prefault(uint64_t offset, uint64_t size_bytes);

  // Bytes that are about to be written for the first time, as an allocator knows: zeros in memory
  // now, many pages in one step, instead of a fault each. A hint: only as far as the budget has
  // room without evicting, only pages of 4 KiB, only where the store has nothing.
  Status prepare(uint64_t offset, uint64_t size_bytes);

  Status advise(uint64_t offset, uint64_t size_bytes, Advice advice);

  // Writes the dirty bytes of the range to the store: success means that the store has every byte
  // that was written before the call. Returns the first error of the store, with what was
  // attempted: one of an earlier write-back, too, once. Not that the store was full (ENOSPC,
  // EDQUOT), if all of the range is stored by now.
  Status flush(uint64_t offset, uint64_t size_bytes);
  Status flush();
  // flush(), and then the store is made durable.
  Status sync();

  // The range reads zero from now on, in the region and in the store (a hole, where the store can).
  // REQUIRES: offset and size are multiples of 4096 (EINVAL); the region is writable (EACCES).
  Status discard(uint64_t offset, uint64_t size_bytes);

  // Makes store and region larger, in place: data() stays. EINVAL beyond the reservation
  // (reserve_bytes) or if smaller; EACCES if the region is not read-write.
  Status grow(uint64_t size_bytes);

  // Copies between the region and ordinary memory: like memcpy, but a failed fill is a returned
  // error, not a signal. The library's own I/O helper for system calls in in-thread delivery:
  // read() then write(2), and so on.
  Status read(uint64_t offset, std::span<std::byte> into) const;
  Status write(uint64_t offset, std::span<const std::byte> from);

  // Makes failed pages, and pages that are zeros because their read failed, absent again: the next
  // touch tries the store again. The region is not degraded any more by what was read. EBUSY: such
  // a page is pinned.
  Status retry_failed();

  RegionMetrics metrics() const;

  // Flushes, unmaps and frees everything, also after an error; returns the first error. If dirty
  // bytes could not be stored, they are lost only with `force`; without it the region stays mapped
  // and the error says so.
  Status unmap(bool force = false);

 private:
  friend class Runtime;
  friend struct CheckpointAccess;  // of the library
  explicit Region(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

template <typename T>
std::span<T> Region::as() const {
  return {reinterpret_cast<T*>(data()), static_cast<size_t>(size_bytes() / sizeof(T))};
}

}  // namespace outcore
