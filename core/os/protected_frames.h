// ProtectedFrames: a memfd and mprotect, for places where userfaultfd is not allowed (Docker's
// default profile).
//
// A page is shown by making its addresses accessible, and unmapped by making them inaccessible. So
// each run of pages with the same protection costs the kernel a mapping; the pages may use most of
// the mappings, but not all (mapping_count.h). The first write to a page is a fault, and the engine
// remembers the page as written as a whole (has_write_faults); collect() itself reports nothing.
#pragma once

#include <memory>

#include "core/os/frames.h"
#include "core/os/mapping_count.h"
#include "core/os/memory_advice.h"

namespace outcore::os {

class ProtectedFrames final : public Frames {
 public:
  static Result<std::unique_ptr<Frames>> make(uint64_t size_bytes);
  ~ProtectedFrames() override;

  FrameKind kind() const override { return FrameKind::kShared; }
  bool leaving_is_readable() const override { return false; }
  bool can_share() const override { return true; }
  bool has_write_faults() const override { return true; }
  bool reports_written() const override { return false; }
  MappingHeadroom mapping_headroom() const override;
  Status attach(const Piece& piece) override;
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
  int restore(const Piece& piece, const SubpageSet& written) override;
  int copy_out(const Piece& piece, std::byte* into) override;
  int free(std::span<const Piece> pieces) override;
  void wake(const Piece&) override {}

 private:
  explicit ProtectedFrames(int memfd) : memfd_(memfd) {}
  int protect(const Piece& piece, MappingCount::Protection protection);
  const int memfd_;
  MappingCount mappings_;
};

}  // namespace outcore::os
