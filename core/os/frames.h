// Frames: moves the bytes of a space's pages into memory and out of it.
//
// There are three kinds with one contract: shared (a memfd), private (anonymous memory) and
// protected (a memfd and mprotect, where userfaultfd is not allowed), and a simulated kind in
// tests. Frames know addresses and offsets, but not the states of pages. The engine guarantees that
// no two calls run on the same page at the same time, except allow_write, and that it names only
// pages that were installed and not freed. All functions are fit for the fault path unless they say
// otherwise: they allocate nothing; errors are -errno.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "outcore/options.h"
#include "outcore/result.h"

namespace outcore::os {

// A part of one page, or of neighbouring pages, as one view shows it. `offset` is the offset in the
// space.
struct Piece {
  std::byte* address = nullptr;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;   // a multiple of 4096
  bool is_writable = false;  // the view is writable
  // Index of the piece's first system page within its page; SubpageSets count from the start of the
  // page.
  uint32_t first_subpage = 0;

  // The part of it in [from, to) of the space, in whole system pages; size 0 if there is none.
  Piece part(uint64_t from, uint64_t to) const {
    OC_ASSERT(from <= to);
    const uint64_t begin = from > offset ? from : offset, end = offset + size_bytes;
    const uint64_t stop = base::round_up(to < end ? to : end, base::kSystemPage);
    if (begin >= stop) return {};
    const uint64_t skip = begin - offset;
    return {address + skip, begin, stop - begin, is_writable,
            first_subpage + static_cast<uint32_t>(skip / base::kSystemPage)};
  }
};

// SubpageSet: a set of the system pages of one page (16 MiB at most).
class SubpageSet {
 public:
  static constexpr unsigned kCount = base::kPageBytesMax / base::kSystemPage;
  void add(uint64_t i) {
    OC_ASSERT(i < kCount);
    word_[i / 64] |= uint64_t{1} << (i % 64);
  }
  bool has(uint64_t i) const {
    OC_ASSERT(i < kCount);
    return (word_[i / 64] >> (i % 64) & 1) != 0;
  }
  void add_range(uint64_t first, uint64_t end) {
    OC_CHECK(first <= end);
    OC_CHECK(end <= kCount);
    for (uint64_t i = first; i < end; ++i) add(i);
  }
  // Finds the first run of members in [from, end): sets *run_first and *run_end (last + 1). False
  // if there is none.
  bool next_run(uint64_t from, uint64_t end, uint64_t* run_first, uint64_t* run_end) const {
    OC_ASSERT(end <= kCount);
    while (from < end && !has(from)) ++from;
    if (from >= end) return false;
    *run_first = from;
    while (from < end && has(from)) ++from;
    *run_end = from;
    return true;
  }
  bool is_empty(uint64_t end) const {
    OC_ASSERT(end <= kCount);
    for (uint64_t i = 0; i * 64 < end; ++i)
      if (word_[i] != 0) return false;
    return true;
  }

 private:
  uint64_t word_[kCount / 64] = {};
};

// A run of system pages that the kernel reports as written: offsets in the space.
struct WrittenRun {
  uint64_t from = 0, to = 0;
};

// How many more pages can be mapped, independent of the budget.
enum class MappingHeadroom : uint8_t { kAmple, kLittle, kNone };

class Frames {
 public:
  virtual ~Frames() = default;
  virtual FrameKind kind() const = 0;

  // True if leaving pages can still be read (private frames); otherwise every touch of one faults.
  virtual bool leaving_is_readable() const = 0;
  // True if frames can hold bytes that no view shows, and several views can show them.
  virtual bool can_share() const = 0;
  // True if collect() knows which system pages were written. False: the engine treats a page as
  // written as a whole, by its write faults.
  virtual bool reports_written() const { return true; }
  // kNone: pages must be evicted before others can be filled; kLittle: some should be.
  virtual MappingHeadroom mapping_headroom() const { return MappingHeadroom::kAmple; }
  // True if the first write to a clean system page is a fault (the kernel does not track writes).
  virtual bool has_write_faults() const = 0;

  // Makes the addresses of the piece show the frames from piece.offset; absent pages fault. The
  // range becomes accessible in one step; before, it is inaccessible. REQUIRES: it lies in reserved
  // addresses. Not on the fault path.
  virtual Status attach(const Piece& piece) = 0;
  // The same where other frames are mapped. With message delivery in one step, without a moment in
  // which a touch or a system call fails; otherwise the range is inaccessible for a moment.
  virtual Status replace(const Piece& piece) { return attach(piece); }
  // Undoes mlock on the range, which would keep its pages from being evicted.
  virtual void unlock(const Piece& piece) { static_cast<void>(piece); }
  // The caller is about to unmap or replace the range.
  virtual void detach(const Piece& piece) = 0;
  // The space now has this many bytes, never fewer than before. Not on the fault path.
  virtual int resize(uint64_t size_bytes) = 0;

  // Fills an absent piece with bytes and maps it; the pages are clean, or written if `is_written`.
  // If the kernel has the page already (EEXIST), that is success.
  virtual int install(const Piece& piece, const std::byte* bytes, bool is_written) = 0;
  // The same of clean pages. Frames that others fill, too, say how many system pages were there
  // already; of others: 0.
  virtual int install_absent(const Piece& piece, const std::byte* bytes, uint64_t* there_pages) {
    *there_pages = 0;
    return install(piece, bytes, false);
  }
  // The same with zeros instead of bytes.
  virtual int install_zeros(const Piece& piece, bool is_written) = 0;
  // Stores bytes in the frames; no view shows them yet. REQUIRES: can_share().
  virtual int deposit(uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Replaces the bytes of a piece that is in memory. A touch meanwhile finds old bytes, new ones,
  // or faults. -errno: some are old, or not there any more. Frames that can share use the offset
  // only. REQUIRES: no view can write it.
  virtual int overwrite(const Piece& piece, const std::byte* bytes) {
    OC_ASSERT(can_share());
    return deposit(piece.offset, {bytes, piece.size_bytes});
  }
  // Maps bytes that the frames hold; the system pages in `written` are writable and count as
  // written, the others are clean. REQUIRES: can_share().
  virtual int show(const Piece& piece, const SubpageSet& written) = 0;
  // Lets a write to the piece go on; the piece then counts as written. REQUIRES: the piece is
  // mapped.
  virtual int allow_write(const Piece& piece) = 0;

  // Unmaps the pieces: afterwards nobody can write them, and every touch faults (unless
  // leaving_is_readable). The pieces are sorted by address: neighbours are joined, and one system
  // call does all.
  virtual int unmap(std::span<const Piece> pieces) = 0;
  // Also reads of what stays in memory for others fault from now on, where that can be had: in
  // views that may write. 0 or -errno. Not the fault path.
  virtual int hide(const Piece& piece) { return static_cast<void>(piece), 0; }
  // Adds to `written` the system pages of the piece that were written since they were installed or
  // last cleared. `clear` also makes them clean, in the same step, so that a later write is
  // reported again. REQUIRES, for frames with write faults: the page of the piece was written.
  virtual int collect(const Piece& piece, bool clear, SubpageSet* written) = 0;
  // Finds system pages of a long piece that the kernel reports as written, without changing
  // anything: at most runs.size() runs, in order. Returns their number, or -errno; *scanned_bytes
  // says how far it came. Pages that were never installed, and pages that were freed or unmapped
  // while they were written, are reported as well. REQUIRES: !has_write_faults(), and a writable
  // view. Pages may change meanwhile.
  virtual int find_written(const Piece& piece, std::span<WrittenRun> runs,
                           uint64_t* scanned_bytes) {
    static_cast<void>(piece), static_cast<void>(runs), static_cast<void>(scanned_bytes);
    return -ENOTSUP;
  }
  // Marks `written` as written again, after a failed write-back. REQUIRES: the piece is mapped.
  virtual int restore(const Piece& piece, const SubpageSet& written) = 0;
  // Copies the bytes that the frames hold. `address` is the place where a view shows them (needed
  // by private frames).
  virtual int copy_out(const Piece& piece, std::byte* into) = 0;
  // True if the frames hold this system page, mapped or not. REQUIRES: can_share().
  virtual bool holds(uint64_t offset) { return static_cast<void>(offset), false; }
  // Frees the memory of the pieces, which no view shows any more (unless leaving_is_readable). They
  // are then absent: the next touch faults. The pieces are sorted by offset; frames that can share
  // use the offsets only.
  virtual int free(std::span<const Piece> pieces) = 0;

  // Message delivery, where the thread that touched sleeps in the kernel: makes touches of this
  // system page fail. REQUIRES: its page is absent.
  virtual int poison(std::byte* at) { return static_cast<void>(at), 0; }
  // Removes poison from the piece, which is absent: the next touch faults again.
  virtual int forget_poison(const Piece& piece) { return static_cast<void>(piece), 0; }

  // Lets threads that wait in the kernel for this range try again (message delivery).
  virtual void wake(const Piece& piece) = 0;
};

}  // namespace outcore::os
