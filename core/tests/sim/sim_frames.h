// SimFrames: the three kinds of frames on a simulated kernel, which behaves as the kernel facts
// say. It checks that the engine keeps the contract of os/frames.h.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "core/os/frames.h"
#include "core/tests/sim/sim_kernel.h"

namespace outcore::sim {

enum class FramesModel : uint8_t {
  kShared,     // a memory file; the kernel tracks writes without faults
  kPrivate,    // anonymous memory of one view; writes to clean pages fault
  kProtected,  // a memory file and mprotect; writes to clean pages fault
};

class SimFrames final : public os::Frames {
 public:
  // A defect on purpose, for tests that show that the simulation notices it.
  enum class Defect : uint8_t {
    kNone,
    kForgetsWrittenAtUnmap,
    kInstallsZeros,
    kForgetsToProtect,
    kOverlooksWritten,
    kForgetsToOverwrite
  };

  SimFrames(SimKernel& kernel, FramesModel model, uint64_t size_bytes)
      : kernel_(kernel),
        model_(model),
        trace_base_(kernel.next_frames_id() * 1'000'000'000'000),
        page_(size_bytes / base::kSystemPage) {}
  ~SimFrames() override;
  void set_defect(Defect defect) { defect_ = defect; }
  // For protected frames: how many system pages may hold bytes before there is no room.
  void set_pages_max(uint64_t pages) { pages_max_ = pages; }

  FrameKind kind() const override {
    return is_private() ? FrameKind::kPrivate : FrameKind::kShared;
  }
  bool leaving_is_readable() const override { return is_private(); }
  bool can_share() const override { return !is_private(); }
  bool reports_written() const override { return model_ != FramesModel::kProtected; }
  bool has_write_faults() const override { return model_ != FramesModel::kShared; }
  os::MappingHeadroom mapping_headroom() const override;
  Status attach(const os::Piece& piece) override;
  void detach(const os::Piece& piece) override;
  int resize(uint64_t size_bytes) override;
  int install(const os::Piece& piece, const std::byte* bytes, bool is_written) override;
  int install_zeros(const os::Piece& piece, bool is_written) override;
  int overwrite(const os::Piece& piece, const std::byte* bytes) override;
  int deposit(uint64_t offset, std::span<const std::byte> bytes) override;
  int show(const os::Piece& piece, const os::SubpageSet& written) override;
  int allow_write(const os::Piece& piece) override;
  int unmap(std::span<const os::Piece> pieces) override;
  int collect(const os::Piece& piece, bool clear, os::SubpageSet* written) override;
  int find_written(const os::Piece& piece, std::span<os::WrittenRun> runs,
                   uint64_t* scanned_bytes) override;
  int restore(const os::Piece& piece, const os::SubpageSet& written) override;
  int copy_out(const os::Piece& piece, std::byte* into) override;
  bool holds(uint64_t offset) override { return page_at(offset).bytes != nullptr; }
  int free(std::span<const os::Piece> pieces) override;
  void wake(const os::Piece& piece) override;

  // -- for the kernel --
  std::byte* touch(PageEntry& entry, uint64_t offset, bool is_write);
  bool is_async() const { return model_ == FramesModel::kShared; }
  std::byte* bytes_at(uint64_t offset);

 private:
  struct SystemPage {
    std::unique_ptr<std::array<std::byte, base::kSystemPage>> bytes;
    bool is_failed_install = false;  // the install of a neighbour failed: it is freed as it is
  };
  // A scheduling point; the trace shows which frames it was.
  void step(const char* what, uint64_t offset, uint64_t b = 0) {
    kernel_.fibers.step(what, trace_base_ + offset, b);
  }
  bool is_private() const { return model_ == FramesModel::kPrivate; }
  SystemPage& page_at(uint64_t offset);
  void put(uint64_t offset, const std::byte* bytes);
  void drop(uint64_t offset);
  PageEntry& entry_of(const os::Piece& piece, uint64_t at) {
    return kernel_.entry(piece.address + at, this);
  }
  void check(const os::Piece& piece, const char* call);
  bool is_refused(const os::Piece& piece);
  int put_and_show(const os::Piece& piece, const std::byte* bytes, bool is_written);
  void set_protection(const os::Piece& piece, const os::SubpageSet& set, bool is_protected);

  SimKernel& kernel_;
  const FramesModel model_;
  Defect defect_ = Defect::kNone;
  uint64_t pages_max_ = UINT64_MAX, pages_held_ = 0;
  const uint64_t trace_base_;
  std::vector<SystemPage> page_;
};

}  // namespace outcore::sim
