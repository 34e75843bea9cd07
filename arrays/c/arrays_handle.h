// ArraysHandle: the object behind an oc_arrays, and the checks that every call on one begins with.
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
  std::optional<outcore::Arrays> arrays;  // empty: the container is closed
  std::string uri;
  pid_t process = ::getpid();
  // Views share it, too: the lent runtime cannot be stopped while one of them exists.
  std::shared_ptr<oc_runtime> lent;
};

namespace outcore::c {

// The bytes of all its elements. ArrayInfo::size_bytes is what they occupy in the container.
inline uint64_t bytes_of(const ArrayInfo& info) {
  uint64_t bytes = info.type.size_bytes;
  for (const uint64_t n : info.dims) bytes *= n;
  return bytes;
}

// Calls call(Arrays&), unless the handle is NULL or closed.
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

// The same, for a call that names an array; the name must not be NULL.
template <typename Handle, typename Call>
int on_array(const char* function, Handle* handle, const char* name, Call&& call) {
  if (handle != nullptr && name == nullptr) return fail_null(function, "name");
  return on_arrays(function, handle, std::forward<Call>(call));
}

}  // namespace outcore::c
