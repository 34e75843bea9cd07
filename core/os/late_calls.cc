#include "core/os/late_calls.h"

#include <dlfcn.h>

namespace outcore::os {

void* open_library(const char* name, int flags) {
  using Open = void* (*)(const char*, int);
  const auto open = reinterpret_cast<Open>(::dlsym(RTLD_DEFAULT, "dlopen"));
  return open == nullptr ? nullptr : open(name, flags);
}

LookUp look_up_hosts() { return reinterpret_cast<LookUp>(::dlsym(RTLD_DEFAULT, "getaddrinfo")); }

}  // namespace outcore::os
