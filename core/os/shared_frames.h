// SharedFrames: pages of a memfd that any number of views can map; the kernel tracks writes at 4
// KiB (WP_ASYNC).
//
// They depend on a fact (docs/internals/kernel-facts.md): a page that was installed write-protected
// and then zapped keeps its written bit. So a batch is unmapped first and asked afterwards, without
// write faults and without a race.
#pragma once

#include <memory>

#include "core/os/fault_ranges.h"
#include "core/os/frames.h"
#include "core/os/memory_advice.h"

namespace outcore::os {

class SharedFrames final : public Frames {
 public:
  // REQUIRES: `source` outlives the frames, and was opened with WP_ASYNC, MISSING_SHMEM and
  // MINOR_SHMEM.
  static Result<std::unique_ptr<Frames>> make(const FaultSource& source, uint64_t size_bytes);
  ~SharedFrames() override;

  FrameKind kind() const override { return FrameKind::kShared; }
  bool leaving_is_readable() const override { return false; }
  bool can_share() const override { return true; }
  bool has_write_faults() const override { return false; }
  Status attach(const Piece& piece) override;
  Status replace(const Piece& piece) override;
  void unlock(const Piece& piece) override { unlock_range(piece); }
  void detach(const Piece&) override {}
  int resize(uint64_t size_bytes) override;
  int install(const Piece& piece, const std::byte* bytes, bool is_written) override;
  int install_zeros(const Piece& piece, bool is_written) override;
  int deposit(uint64_t offset, std::span<const std::byte> bytes) override;
  int show(const Piece& piece, const SubpageSet& written) override;
  int allow_write(const Piece& piece) override;
  int unmap(std::span<const Piece> pieces) override;
  int collect(const Piece& piece, bool clear, SubpageSet* written) override;
  int find_written(const Piece& piece, std::span<WrittenRun> runs,
                   uint64_t* scanned_bytes) override;
  int restore(const Piece& piece, const SubpageSet& written) override;
  int copy_out(const Piece& piece, std::byte* into) override;
  bool holds(uint64_t offset) override;
  int free(std::span<const Piece> pieces) override;
  int poison(std::byte* at) override { return os::poison(source_, at); }
  int forget_poison(const Piece& piece) override;
  void wake(const Piece& piece) override;

 private:
  SharedFrames(const FaultSource& source, int memfd) : source_(source), memfd_(memfd) {}
  int map(const Piece& piece);
  const FaultSource& source_;
  const int memfd_;
};

}  // namespace outcore::os
