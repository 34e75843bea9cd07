// BufferKernel: what the kernel does for simulated processes that share a buffer: which pages are
// in memory, and what the processes' page tables show of them. The pages themselves lie in the
// buffer's own memory file, which the shipped code fills, punches and stores from.
//
// A page that leaves vanishes from all tables at once, with its protection. The kernel itself maps
// what is in memory where a view only reads; in one that may write each page is shown by a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/buffer/board.h"
#include "core/os/frames.h"
#include "core/tests/sim/fibers.h"

namespace outcore::sim {

class BufferKernel {
 public:
  static constexpr uint64_t kPagesMax = 1 << 15;  // of the memory file, that are looked at

  explicit BufferKernel(Fibers& scheduler) : fibers(scheduler), incarnation_(kPagesMax) {}
  ~BufferKernel();
  BufferKernel(const BufferKernel&) = delete;
  BufferKernel& operator=(const BufferKernel&) = delete;

  Fibers& fibers;
  // Called whenever a page has come in.
  std::function<void()> on_page;

  void open(int frames_fd);  // once; a descriptor of its own
  bool is_in(uint64_t frame_page) const;
  std::byte* bytes_of(uint64_t frame_page) const;  // REQUIRES: is_in()
  // As UFFDIO_COPY: what is there stays.
  void copy_in(uint64_t frame_page, const std::byte* bytes);
  // Another number each time that the page comes in.
  uint64_t incarnation(uint64_t frame_page) const { return incarnation_[frame_page]; }

 private:
  int frames_fd_ = -1;
  std::byte* frames_ = nullptr;
  std::vector<uint64_t> incarnation_;
};

// The frames of one file in one process, as os::BufferFrames makes them.
class BufferSimFrames final : public os::Frames {
 public:
  // A defect on purpose, for tests that show that the simulation notices it.
  enum class Defect : uint8_t { kNone, kForgetsToProtect, kInstallsZeros };

  BufferSimFrames(BufferKernel& kernel, uint64_t first_frame_page, uint64_t pages, bool is_writable,
                  Defect defect)
      : kernel_(kernel),
        first_(first_frame_page),
        is_writable_(is_writable),
        defect_(defect),
        entry_(pages) {}

  // What a program does: the bytes of the page, or nullptr if the touch faults.
  std::byte* touch(uint64_t page, bool is_write) const;

  FrameKind kind() const override { return FrameKind::kShared; }
  bool leaving_is_readable() const override { return false; }
  bool can_share() const override { return true; }
  bool has_write_faults() const override { return is_writable_; }
  Status attach(const os::Piece&) override { return {}; }
  void unlock(const os::Piece&) override {}
  void detach(const os::Piece&) override {}
  int resize(uint64_t) override { return 0; }
  int install(const os::Piece& piece, const std::byte* bytes, bool is_written) override;
  int install_zeros(const os::Piece& piece, bool is_written) override;
  int poison(std::byte*) override { return -EEXIST; }
  int forget_poison(const os::Piece&) override { return 0; }
  void wake(const os::Piece&) override {}
  int allow_write(const os::Piece& piece) override;
  int show(const os::Piece& piece, const os::SubpageSet&) override;
  int unmap(std::span<const os::Piece> pieces) override;
  // The pager keeps no page of these frames itself.
  int deposit(uint64_t, std::span<const std::byte>) override { return -ENOTSUP; }
  int collect(const os::Piece&, bool, os::SubpageSet*) override { return 0; }
  int restore(const os::Piece&, const os::SubpageSet&) override { return 0; }
  int copy_out(const os::Piece&, std::byte*) override { return -ENOTSUP; }
  int free(std::span<const os::Piece>) override { return 0; }

 private:
  struct Entry {
    uint64_t incarnation = 0;  // of the page that is shown; 0: none
    bool is_protected = false;
  };
  bool is_shown(uint64_t page) const;
  int continue_in(const os::Piece& piece, bool is_protected);
  // Calls f(page) for each, with a point before.
  template <typename F>
  void for_each(const os::Piece& piece, const char* what, const F& f);

  BufferKernel& kernel_;
  const uint64_t first_;
  const bool is_writable_;
  const Defect defect_;
  std::vector<Entry> entry_;
};

}  // namespace outcore::sim
