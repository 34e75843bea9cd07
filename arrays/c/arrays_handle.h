// ArraysHandle: what an oc_arrays is, and what every call on one looks at first.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/c/handles.h"
#include "core/c/outcome.h"
#include "outcore/arrays.h"
#include "outcore/arrays_c.h"

struct oc_arrays {
  std::optional<outcore::Arrays> arrays;  // none: it is closed
  std::string uri;
  pid_t process = ::getpid();
  // Views have it, too: as long as somebody does, the runtime that was lent cannot be stopped.
  std::shared_ptr<oc_runtime> lent;
};

namespace outcore::c {

// Of its elements; what it takes up is ArrayInfo::size_bytes.
inline uint64_t bytes_of(const ArrayInfo& info) {
  uint64_t bytes = info.type.size_bytes;
  for (const uint64_t n : info.dims) bytes *= n;
  return bytes;
}

// Runs call(Arrays&), unless the handle cannot be used.
template <typename Handle, typename Call>
int on_arrays(const char* function, Handle* handle, Call&& call) {
  if (handle == nullptr) return fail_null(function, "arrays");
  return guarded(function, [&] {
    const std::string attempted = std::string(function) + ": ";
    if (!handle->arrays.has_value())
      return fail(EBADF, attempted + "the container is closed: oc_arrays_open it again");
    if (handle->process != ::getpid())
      return fail(EPERM, attempted + handle->uri +
                             " is open in the parent of this process: open it here, too");
    return call(*handle->arrays);
  });
}

// The same with the name of an array, which must not be NULL.
template <typename Handle, typename Call>
int on_array(const char* function, Handle* handle, const char* name, Call&& call) {
  if (handle != nullptr && name == nullptr) return fail_null(function, "name");
  return on_arrays(function, handle, std::forward<Call>(call));
}

}  // namespace outcore::c
