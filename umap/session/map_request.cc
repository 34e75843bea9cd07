#include "umap/session/map_request.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "outcore/umap_sparse_store.h"
#include "umap/stores/descriptor_store.h"
#include "umap/stores/program_store.h"

namespace outcore::umapped {
namespace {

constexpr uint64_t kRegionBytesMax = uint64_t{1} << 46;  // as of every region
constexpr off_t kOffsetMax = off_t{1} << 62;

Error wrong(const std::string& why) { return {EINVAL, "umap: " + why}; }

std::string hexadecimal(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%#lx", static_cast<unsigned long>(value));
  return text;
}

Result<std::shared_ptr<Store>> opened_sparse(const Umap::SparseStore& sparse, bool is_writable) {
  if (sparse.opened() == nullptr)
    return base::system_error(sparse.get_directory_creation_status(),
                              "umap: use a SparseStore that is not open");
  if (is_writable && sparse.is_read_only())
    return Error{EACCES, "umap: the SparseStore is open for reading alone: leave out PROT_WRITE"};
  return sparse.opened();
}

}  // namespace

bool MapRequest::is_fixed() const { return (flags & MAP_FIXED) != 0; }
bool MapRequest::is_writable() const { return (protection & PROT_WRITE) != 0; }

Status MapRequest::check() const {
  if (size_bytes == 0) return wrong("a length of 0 bytes");
  if (size_bytes > kRegionBytesMax) return wrong("a length of more than 64 TiB: map a part");
  if ((protection & ~(PROT_READ | PROT_WRITE)) != 0 || (protection & PROT_READ) == 0)
    return wrong("prot " + hexadecimal(static_cast<unsigned>(protection)) +
                 ": it is PROT_READ or PROT_READ|PROT_WRITE");
  if ((flags & MAP_PRIVATE) == 0 || (flags & ~(MAP_PRIVATE | MAP_FIXED)) != 0)
    return wrong("flags " + hexadecimal(static_cast<unsigned>(flags)) +
                 ": they are UMAP_PRIVATE, with or without UMAP_FIXED");
  if (offset < 0 || offset > kOffsetMax || static_cast<uint64_t>(offset) % base::kSystemPage != 0)
    return wrong("offset " + std::to_string(offset) + ": it is a multiple of 4096");
  if (!base::is_power_of_two(page_bytes) || page_bytes < base::kSystemPage ||
      page_bytes > base::kPageBytesMax)
    return wrong("pages of " + std::to_string(page_bytes) +
                 " bytes: a power of two from 4 KiB to 16 MiB will do");
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (at % page_bytes != 0)
    return wrong("address " + hexadecimal(at) + ": it is a multiple of the page size, " +
                 std::to_string(page_bytes));
  if (at > UINTPTR_MAX - base::round_up(size_bytes, base::kSystemPage))
    return wrong("address " + hexadecimal(at) + ": the region would go past the last address");
  if (is_fixed() && address == nullptr) return wrong("UMAP_FIXED without an address");
  return {};
}

Result<std::shared_ptr<Store>> MapRequest::open() const {
  OC_CHECK(check().ok());
  if (store == nullptr) return open_descriptor(fd, is_writable(), end_bytes());
  if (const auto* sparse = dynamic_cast<const Umap::SparseStore*>(store))
    return opened_sparse(*sparse, is_writable());
  return std::shared_ptr<Store>(std::make_shared<ProgramStore>(store, end_bytes(), page_bytes));
}

}  // namespace outcore::umapped
