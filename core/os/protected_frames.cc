#include "core/os/protected_frames.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/file_calls.h"
#include "core/os/memory_file.h"
#include "core/os/parents_descriptors.h"

namespace outcore::os {

using Protection = MappingCount::Protection;

int ProtectedFrames::protect(const Piece& piece, Protection protection) {
  constexpr int kFlags[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE};
  OC_CHECK(static_cast<size_t>(protection) < 3);
  OC_CHECK(piece.size_bytes != 0);
  OC_CHECK(piece.address != nullptr);
  if (::mprotect(piece.address, piece.size_bytes, kFlags[static_cast<size_t>(protection)]) != 0)
    return -errno;
  mappings_.set(piece.offset, piece.size_bytes, protection);
  return 0;
}

MappingHeadroom ProtectedFrames::mapping_headroom() const {
  const uint64_t used = MappingCount::count_of_all(), limit = MappingCount::limit();
  // Each space may use a few, because a space that has none could not make room by evicting.
  const uint64_t least = limit / 64;
  if (used >= limit && mappings_.count() >= least) return MappingHeadroom::kNone;
  return used >= limit - limit / 16 ? MappingHeadroom::kLittle : MappingHeadroom::kAmple;
}

Result<std::unique_ptr<Frames>> ProtectedFrames::make(uint64_t size_bytes) {
  Result<int> memfd = make_memory_file(size_bytes);
  if (!memfd) return memfd.error();
  std::unique_ptr<ProtectedFrames> frames(new ProtectedFrames(memfd.value()));
  if (Status s = frames->mappings_.allocate(size_bytes); !s) return s.error();
  return std::unique_ptr<Frames>(std::move(frames));
}

ProtectedFrames::~ProtectedFrames() { ParentsDescriptors::close(memfd_); }

Status ProtectedFrames::attach(const Piece& piece) {
  if (const int result = map_memory_file(memfd_, piece); result != 0)
    return base::system_error(result, "map frames", "raise vm.max_map_count");
  return {};
}

int ProtectedFrames::resize(uint64_t size_bytes) { return set_size(memfd_, size_bytes); }

int ProtectedFrames::install(const Piece& piece, const std::byte* bytes, bool is_written) {
  if (const int r = deposit(piece.offset, {bytes, piece.size_bytes}); r != 0) return r;
  return protect(piece, is_written ? Protection::kWrite : Protection::kRead);
}

int ProtectedFrames::install_zeros(const Piece& piece, bool is_written) {
  // Parts that the memfd does not hold read zero. The touch that follows allocates the page.
  return protect(piece, is_written ? Protection::kWrite : Protection::kRead);
}

int ProtectedFrames::deposit(uint64_t offset, std::span<const std::byte> bytes) {
  return write_all(memfd_, offset, bytes);
}

int ProtectedFrames::show(const Piece& piece, const SubpageSet& written) {
  const bool is_written = written.has(piece.first_subpage);
  return protect(piece, is_written && piece.is_writable ? Protection::kWrite : Protection::kRead);
}

int ProtectedFrames::allow_write(const Piece& piece) { return protect(piece, Protection::kWrite); }

int ProtectedFrames::unmap(std::span<const Piece> pieces) {
  for (size_t i = 0; i < pieces.size();) {
    Piece joined = pieces[i];
    OC_ASSERT(joined.offset % base::kSystemPage == 0);
    for (++i; i < pieces.size() && pieces[i].address == joined.address + joined.size_bytes; ++i)
      joined.size_bytes += pieces[i].size_bytes;
    if (const int r = protect(joined, Protection::kNone); r != 0) return r;
  }
  return 0;
}

int ProtectedFrames::collect(const Piece& piece, bool clear, SubpageSet*) {
  return clear ? protect(piece, Protection::kRead) : 0;
}

int ProtectedFrames::restore(const Piece&, const SubpageSet&) {
  return 0;  // only the engine's dirty flag counts; the next write faults, and is allowed
}

int ProtectedFrames::copy_out(const Piece& piece, std::byte* into) {
  return read_all(memfd_, piece.offset, {into, piece.size_bytes});
}

int ProtectedFrames::free(std::span<const Piece> pieces) { return punch_all(memfd_, pieces); }

}  // namespace outcore::os
