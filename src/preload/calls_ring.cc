// The ways in which liburing sets up a ring: it does so by an instruction of
// its own, past the C library. A program that has liburing linked into itself
// is not seen. See later_writes.h, calls.h.
#include <dlfcn.h>
#include <liburing.h>

#include "preload/calls.h"
#include "preload/later_writes.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names
                                   // of this room

namespace {

// Looked up at each call: liburing may be loaded later than this library.
template <typename... Arguments>
int next(const char* name, Arguments... arguments) {
  before_later_writes();
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) return -ENOSYS;
  return reinterpret_cast<int (*)(Arguments...)>(found)(arguments...);
}

}  // namespace

OUTCORE_EXPORT int io_uring_queue_init(unsigned entries, io_uring* ring, unsigned flags) {
  return next("io_uring_queue_init", entries, ring, flags);
}

OUTCORE_EXPORT int io_uring_queue_init_params(unsigned entries, io_uring* ring,
                                              io_uring_params* params) {
  return next("io_uring_queue_init_params", entries, ring, params);
}

OUTCORE_EXPORT int io_uring_queue_init_mem(unsigned entries, io_uring* ring,
                                           io_uring_params* params, void* memory, size_t bytes) {
  return next("io_uring_queue_init_mem", entries, ring, params, memory, bytes);
}

OUTCORE_EXPORT int io_uring_setup(unsigned entries, io_uring_params* params) {
  return next("io_uring_setup", entries, params);
}
