#include "core/runtime/store_size.h"

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "core/base/error.h"
#include "core/base/units.h"
#include "core/runtime/map_checks.h"
#include "core/runtime/sharing.h"
#include "core/store/store_calls.h"

namespace outcore::runtime {

using base::format_bytes;

uint64_t StoreSize::after(const Store& store, const MapOptions& o) {
  const bool may_grow = o.may_create && o.access == Access::kReadWrite;
  return may_grow ? std::max(store.size_bytes(), o.offset + o.size_bytes) : store.size_bytes();
}

Status StoreSize::enlarge(Store& store, const std::string& uri, const MapOptions& o) const {
  const uint64_t bytes = after(store, o);
  if (bytes <= store.size_bytes()) return {};
  if (Status s = runtime_.sharing->may_enlarge(store, bytes); !s)
    return refuse(s.code(), uri, s.message());
  const int result = store::resize(store, bytes);
  if (result == 0) return {};
  return base::system_error(result, "make " + uri + " larger, to " + format_bytes(bytes));
}

Status StoreSize::shorten(Store& store, uint64_t bytes) const {
  const std::string attempt =
      "make " + store.uri() + " shorter, " + std::to_string(bytes) + " bytes";
  const std::lock_guard<std::mutex> guard(runtime_.mapping);
  if (bytes > store.size_bytes())
    return Error{EINVAL, attempt + ": it has " + std::to_string(store.size_bytes()) +
                             ": map it with may_create to make it longer"};
  if (bytes == store.size_bytes()) return {};
  if (runtime_.caches.contains(key_of(store)))
    return Error{EBUSY, attempt + ": it is mapped, and would be cut short: unmap it first"};
  if (Status s = runtime_.sharing->may_shorten(store); !s)
    return Error{s.code(), attempt + ": " + s.message()};
  const int result = store::resize(store, bytes);
  return result == 0 ? Status() : base::system_error(result, attempt);
}

}  // namespace outcore::runtime
