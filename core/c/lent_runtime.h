// LentRuntime: a runtime that a handle was given, which cannot be stopped while the handle has it.
#pragma once

#include <memory>
#include <mutex>

#include "core/c/handles.h"

namespace outcore::c {

// From here on until nobody has it.
inline std::shared_ptr<oc_runtime> lend(oc_runtime* runtime) {
  if (runtime == nullptr) return {};
  {
    const std::lock_guard<std::mutex> guard(runtime->mutex);
    ++runtime->container_count;
  }
  return {runtime, [](oc_runtime* lent) {
            const std::lock_guard<std::mutex> guard(lent->mutex);
            --lent->container_count;
          }};
}

}  // namespace outcore::c
