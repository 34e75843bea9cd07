// Frames: how the bytes of one space's pages enter and leave memory.
//
// Three kinds, one contract: shared (a memfd), private (anonymous memory), protected (a memfd and
// mprotect, where userfaultfd is blocked); and a simulated one in tests. Frames know addresses and
// offsets, not pages' states: the engine promises that no two calls run on the same page at once,
// but for allow_write, and that only what was installed and not freed is named. Everything here is
// on the fault path: nothing allocates, errors are -errno.
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

// Part of a page (or of neighbouring pages) as one view shows it. `offset` counts from the start of
// the space.
struct Piece {
  std::byte* address = nullptr;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;   // a multiple of 4096
  bool is_writable = false;  // the view is
  uint32_t first_subpage =
      0;  // where its first system page stands in its page: SubpageSets count from there

  // What of it lies in [from, to) of the space, whole system pages; empty (size 0) if nothing does.
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

// SubpageSet: which system pages of one page (16 MiB at most).
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
  // The first run of members (or of non-members) in [from, end): sets first and last + 1; false if
  // there is none.
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

// A run of system pages that scan as written: offsets in the space.
struct WrittenRun {
  uint64_t from = 0, to = 0;
};

// How many more pages can be shown, whatever the budget says.
enum class Room : uint8_t { kAmple, kLittle, kNone };

class Frames {
 public:
  virtual ~Frames() = default;
  virtual FrameKind kind() const = 0;

  // Leaving pages can still be read (private frames); otherwise every touch of one faults.
  virtual bool leaving_is_readable() const = 0;
  // Frames can hold bytes that no view shows, and several views can show them.
  virtual bool can_share() const = 0;
  // collect() knows which system pages were written. Otherwise the engine takes a page with write
  // faults as a whole.
  virtual bool reports_written() const { return true; }
  // kNone: pages must leave before others come; kLittle: some should.
  virtual Room room() const { return Room::kAmple; }
  // The engine is told of the first write to a clean system page by a fault (no kernel tracking).
  virtual bool has_write_faults() const = 0;

  // Makes piece.address … show the frames from piece.offset; absent pages fault. The range appears
  // at once: before, it is inaccessible. REQUIRES: it lies in reserved addresses. Not on the fault
  // path.
  virtual Status attach(const Piece& piece) = 0;
  // The same in place of other frames. By messages in one step, without a moment in which a touch
  // or a system call fails; otherwise touches in between find the range inaccessible.
  virtual Status replace(const Piece& piece) { return attach(piece); }
  // The program may have locked the range in memory (mlock), where nothing can leave: no more.
  virtual void unlock(const Piece& piece) { static_cast<void>(piece); }
  // The range is about to be unmapped or replaced by the caller.
  virtual void detach(const Piece& piece) = 0;
  // The space has this many bytes now (never fewer than before). Not on the fault path.
  virtual int resize(uint64_t size_bytes) = 0;

  // Fills an absent piece with bytes and shows it; clean but for what `is_written` says (all of
  // it). If the kernel has the page already (EEXIST), that is success.
  virtual int install(const Piece& piece, const std::byte* bytes, bool is_written) = 0;
  // The same with zeros.
  virtual int install_zeros(const Piece& piece, bool is_written) = 0;
  // REQUIRES: can_share(). Puts bytes in; no view shows them yet.
  virtual int deposit(uint64_t offset, std::span<const std::byte> bytes) = 0;
  // REQUIRES: can_share(). Shows bytes that are in, with these of its system pages writable and
  // taken for written, the others clean.
  virtual int show(const Piece& piece, const SubpageSet& written) = 0;
  // REQUIRES: the piece is shown. A write to it proceeds, and it is taken for written.
  virtual int allow_write(const Piece& piece) = 0;

  // After it nobody can write the pieces, and (unless leaving_is_readable) every touch faults.
  // Sorted by address: one system call for all, neighbours joined.
  virtual int unmap(std::span<const Piece> pieces) = 0;
  // Which system pages of the piece were written since they were installed or last cleared; adds
  // them to `written`. `clear` makes them clean in the same step: a later write is told again.
  // REQUIRES, of frames with write faults: the page that the piece belongs to was written.
  virtual int collect(const Piece& piece, bool clear, SubpageSet* written) = 0;
  // Looks, and changes nothing, for the system pages of a long piece that scan as written: at most
  // runs.size() of them, in order. How many, or -errno; *scanned_bytes is how far it came. What was
  // never installed, and what was freed or unmapped when it was written, scans as written, too.
  // REQUIRES: !has_write_faults(), and a writable view; pages may change meanwhile.
  virtual int find_written(const Piece& piece, std::span<WrittenRun> runs,
                           uint64_t* scanned_bytes) {
    static_cast<void>(piece), static_cast<void>(runs), static_cast<void>(scanned_bytes);
    return -ENOTSUP;
  }
  // Takes `written` for written again (a write-back failed). REQUIRES: shown.
  virtual int restore(const Piece& piece, const SubpageSet& written) = 0;
  // Copies what the frames hold. `address` is where a view shows it (private frames have no other
  // way).
  virtual int copy_out(const Piece& piece, std::byte* into) = 0;
  // REQUIRES: can_share(). The frames hold this system page, shown or not.
  virtual bool holds(uint64_t offset) { return static_cast<void>(offset), false; }
  // Frees the memory of the pieces, which nothing shows any more unless leaving_is_readable. They
  // are absent: the next touch faults. Sorted by offset; frames that can share go by offsets alone.
  virtual int free(std::span<const Piece> pieces) = 0;

  // Message delivery, where whoever touched sleeps in the kernel: makes touches of this system page
  // fail. REQUIRES: its page is absent.
  virtual int poison(std::byte* at) { return static_cast<void>(at), 0; }
  // The piece is absent, and some of it may be poisoned: the next touch faults again.
  virtual int forget_poison(const Piece& piece) { return static_cast<void>(piece), 0; }

  // Lets threads that wait in the kernel for this range look again (message delivery).
  virtual void wake(const Piece& piece) = 0;
};

}  // namespace outcore::os
