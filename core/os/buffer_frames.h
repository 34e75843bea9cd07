// BufferFrames: pages of one file in the memory of a buffer, which several processes map
// (core/buffer). What is in the memory file is right, so the kernel itself maps it where it is
// touched; only a touch of what is not there is a fault. In a writable view the first touch of each
// page is one, too, unless it was shown with a neighbour, and the first write after unmap(). Who
// frees pages does so for all processes, without these frames (core/buffer/puncher.h).
#pragma once

#include <cerrno>
#include <memory>

#include "core/os/fault_ranges.h"
#include "core/os/frames.h"
#include "core/os/memory_advice.h"

namespace outcore::os {

class BufferFrames final : public Frames {
 public:
  // The file's pages lie from `base_bytes` on in the memory file. REQUIRES: `source` and `memfd`
  // outlive the frames; the source knows MISSING_SHMEM.
  // `is_writable`: some view may be; then the source reports writes to protected pages.
  static std::unique_ptr<Frames> make(const FaultSource& source, int memfd, uint64_t base_bytes,
                                      bool is_writable);

  FrameKind kind() const override { return FrameKind::kShared; }
  bool leaving_is_readable() const override { return false; }
  bool can_share() const override { return true; }
  bool has_write_faults() const override { return is_writable_; }
  Status attach(const Piece& piece) override;
  void unlock(const Piece& piece) override { unlock_range(piece); }
  void detach(const Piece&) override {}
  int resize(uint64_t) override { return 0; }
  int install(const Piece& piece, const std::byte* bytes, bool is_written) override;
  int install_absent(const Piece& piece, const std::byte* bytes, uint64_t* there_pages) override;
  int install_zeros(const Piece& piece, bool is_written) override;
  // -EEXIST: it is in memory, and a view that may write it must not lose its protection.
  int poison(std::byte* at) override;
  int forget_poison(const Piece& piece) override;
  void wake(const Piece& piece) override;
  // Lets writes to the piece go on, as far as the view is concerned; it need not be in memory.
  int allow_write(const Piece& piece) override;
  // Maps what is in memory, protected. -EFAULT: it is not there.
  int show(const Piece& piece, const SubpageSet&) override;

  // The pager keeps no page of these frames itself, so it never asks for what follows.
  int deposit(uint64_t, std::span<const std::byte>) override { return -ENOTSUP; }
  // Here: nobody can write them through the pieces before a fault.
  int unmap(std::span<const Piece> pieces) override;
  int hide(const Piece& piece) override;
  int collect(const Piece&, bool, SubpageSet*) override { return 0; }
  int restore(const Piece&, const SubpageSet&) override { return 0; }
  int copy_out(const Piece&, std::byte*) override { return -ENOTSUP; }
  int free(std::span<const Piece>) override { return 0; }

 private:
  BufferFrames(const FaultSource& source, int memfd, uint64_t base_bytes, bool is_writable)
      : source_(source), memfd_(memfd), base_bytes_(base_bytes), is_writable_(is_writable) {}
  int map(const Piece& piece);
  const FaultSource& source_;
  const int memfd_;
  const uint64_t base_bytes_;
  const bool is_writable_;
};

// Which system pages of the range the buffer holds now: bit 0 of a byte each. A guess a moment
// later. The fault path. REQUIRES: buffer frames are mapped there, or what took their place.
int look_up_presence(const std::byte* at, uint64_t size_bytes, unsigned char* present);

}  // namespace outcore::os
