#include "core/runtime/overlay.h"

#include <cerrno>

#include "core/base/units.h"
#include "core/store/overlay_store.h"

namespace outcore::runtime {

Result<std::shared_ptr<Store>> private_overlay(const std::shared_ptr<Store>& base, uint64_t offset,
                                               uint64_t size_bytes,
                                               const std::string& scratch_dir) {
  OpenOptions open;
  open.is_writable = open.may_create = true;
  open.size_bytes = base::round_up(size_bytes, base::kSystemPage);
  open.scratch_dir = scratch_dir;
  if (open.size_bytes == 0) open.size_bytes = base::kSystemPage;
  Result<std::shared_ptr<Store>> scratch = open_store("scratch:", open);
  if (!scratch) return scratch.error();
  std::shared_ptr<Store> overlay = store::make_overlay(
      base, std::move(scratch).value(), offset, base::round_up(size_bytes, base::kSystemPage));
  if (overlay == nullptr)
    return Error{ENOMEM, "map " + base->uri() + " privately: no memory for its table of changes"};
  return overlay;
}

}  // namespace outcore::runtime
