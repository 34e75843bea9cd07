// PrivateFrames: anonymous pages of one view. The cheapest fill. Writes are tracked by faults
// (synchronous write protection), and a leaving page stays readable until it is freed.
#pragma once

#include <memory>

#include "core/os/fault_ranges.h"
#include "core/os/frames.h"
#include "core/os/memory_advice.h"

namespace outcore::os {

class PrivateFrames final : public Frames {
 public:
  // REQUIRES: `source` outlives the frames, and was opened without WP_ASYNC.
  static std::unique_ptr<Frames> make(const FaultSource& source);

  FrameKind kind() const override { return FrameKind::kPrivate; }
  bool leaving_is_readable() const override { return true; }
  bool can_share() const override { return false; }
  bool has_write_faults() const override { return true; }
  Status attach(const Piece& piece) override;
  void unlock(const Piece& piece) override { unlock_range(piece); }
  void detach(const Piece&) override {}
  int resize(uint64_t) override { return 0; }
  int install(const Piece& piece, const std::byte* bytes, bool is_written) override;
  int install_zeros(const Piece& piece, bool is_written) override;
  int overwrite(const Piece& piece, const std::byte* bytes) override;
  int deposit(uint64_t offset, std::span<const std::byte> bytes) override;
  int show(const Piece& piece, const SubpageSet& written) override;
  int allow_write(const Piece& piece) override;
  int unmap(std::span<const Piece>) override { return 0; }
  int collect(const Piece& piece, bool clear, SubpageSet* written) override;
  int restore(const Piece& piece, const SubpageSet& written) override;
  int copy_out(const Piece& piece, std::byte* into) override;
  int free(std::span<const Piece> pieces) override;
  int poison(std::byte* at) override { return os::poison(source_, at); }
  int forget_poison(const Piece& piece) override;
  void wake(const Piece& piece) override;

 private:
  explicit PrivateFrames(const FaultSource& source) : source_(source) {}
  int map(const Piece& piece);
  int set_protection(const Piece& piece, const SubpageSet& set, bool is_protected);
  const FaultSource& source_;
};

}  // namespace outcore::os
