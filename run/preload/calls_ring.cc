// The functions by which liburing sets up a ring. It makes the system call by an instruction of its
// own, not through the C library. If liburing is linked into the program itself, we do not see that
// it sets up a ring. See later_writes.h, calls.h.
#include <dlfcn.h>
#include <liburing.h>

#include <cerrno>

#include "run/preload/calls.h"
#include "run/preload/later_writes.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

// The function is looked up at each call: liburing may be loaded later than this library. If a
// plugin has one of its own, loaded for it alone or linked into it, that is found by the caller's
// address.
void* find(const char* name, const void* caller) {
  if (void* const found = ::dlsym(RTLD_NEXT, name); found != nullptr) return found;
  Dl_info about{};
  if (::dladdr(caller, &about) == 0 || about.dli_fname == nullptr) return nullptr;
  void* const plugin = ::dlopen(about.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
  if (plugin == nullptr) return nullptr;
  void* const found = ::dlsym(plugin, name);
  ::dlclose(plugin);  // it stays loaded, because it is in use
  return found;
}

template <typename... Arguments>
int next(const char* name, const void* caller, Arguments... arguments) {
  if (!is_ready(before_later_writes)) return -ENOMEM;
  void* const found = find(name, caller);
  if (found == nullptr) return -ENOSYS;
  return reinterpret_cast<int (*)(Arguments...)>(found)(arguments...);
}

}  // namespace

OUTCORE_EXPORT int io_uring_queue_init(unsigned entries, io_uring* ring, unsigned flags) {
  return next("io_uring_queue_init", __builtin_return_address(0), entries, ring, flags);
}

OUTCORE_EXPORT int io_uring_queue_init_params(unsigned entries, io_uring* ring,
                                              io_uring_params* params) {
  return next("io_uring_queue_init_params", __builtin_return_address(0), entries, ring, params);
}

OUTCORE_EXPORT int io_uring_queue_init_mem(unsigned entries, io_uring* ring,
                                           io_uring_params* params, void* memory, size_t bytes) {
  return next("io_uring_queue_init_mem", __builtin_return_address(0), entries, ring, params, memory,
              bytes);
}

OUTCORE_EXPORT int io_uring_setup(unsigned entries, io_uring_params* params) {
  return next("io_uring_setup", __builtin_return_address(0), entries, params);
}
