#include "core/runtime/map_checks.h"

#include <cerrno>

#include "core/base/units.h"

namespace outcore::runtime {

using base::format_bytes;
using base::kPageBytesMax;
using base::kSystemPage;
using base::round_up;

Status check_size(const std::string& uri, const MapOptions& o) {
  constexpr uint64_t kRegionBytesMax = uint64_t{1} << 46, kOffsetMax = uint64_t{1} << 62;
  if (o.size_bytes > kRegionBytesMax || o.reserve_bytes > kRegionBytesMax)
    return refuse(EINVAL, uri, "more than 64 TiB of addresses: map a part of it");
  if (o.offset > kOffsetMax) return refuse(EINVAL, uri, "an offset past 4 EiB");
  return {};
}

Status check_map(const std::string& uri, const MapOptions& o, uint64_t store_bytes, bool is_lent) {
  if (o.offset % kSystemPage != 0)
    return refuse(EINVAL, uri, "offset " + std::to_string(o.offset) + " is not a multiple of 4096");
  if (o.page_bytes != 0 && (!base::is_power_of_two(o.page_bytes) || o.page_bytes < kSystemPage ||
                            o.page_bytes > kPageBytesMax))
    return refuse(EINVAL, uri,
                  "pages of " + std::to_string(o.page_bytes) +
                      " bytes: a power of two from 4 KiB to 16 MiB will do");
  if (o.offset > store_bytes && is_lent) return {};  // the region shows nothing yet
  if (o.offset > store_bytes)
    return refuse(EINVAL, uri,
                  "offset " + std::to_string(o.offset) + " is past the end at " +
                      std::to_string(store_bytes));
  const uint64_t room_bytes = store_bytes - o.offset;
  if (o.access == Access::kReadWrite && o.size_bytes > round_up(room_bytes, kSystemPage))
    return refuse(EINVAL, uri,
                  format_bytes(o.size_bytes) + " from offset " + std::to_string(o.offset) +
                      ", but the store ends at " + std::to_string(store_bytes) +
                      ": map less, or create or grow it (may_create)");
  if (o.reserve_bytes != 0 && o.reserve_bytes < o.size_bytes)
    return refuse(EINVAL, uri, "reserve_bytes is smaller than the size");
  if (reinterpret_cast<uint64_t>(o.address) % kSystemPage != 0)
    return refuse(EINVAL, uri, "the address is not a multiple of 4096");
  if (o.access != Access::kReadOnly && o.on_error == OnError::kZeroFill)
    return refuse(EINVAL, uri, kNoZeros);
  return {};
}

}  // namespace outcore::runtime
