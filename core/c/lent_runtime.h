// LentRuntime: keeps a runtime from being stopped while a handle uses it. Any thread.
#pragma once

#include <memory>

#include "core/c/handles.h"

namespace outcore::c {

// The runtime counts as lent until the last copy of the pointer is gone.
inline std::shared_ptr<oc_runtime> lend(oc_runtime* runtime) {
  if (runtime == nullptr) return {};
  {
    const outcore::os::Locked locked(runtime->mutex);
    ++runtime->container_count;
  }
  return {runtime, [](oc_runtime* lent) {
            const outcore::os::Locked locked(lent->mutex);
            --lent->container_count;
          }};
}

}  // namespace outcore::c
