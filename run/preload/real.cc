#include "run/preload/real.h"

#include <dlfcn.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdarg>

namespace outcore::preload {
namespace {

Real table;
std::atomic<bool> is_looked_up{false};

template <typename F>
void look_up(F& into, const char* name) {
  void* found = ::dlsym(RTLD_NEXT, name);
  __builtin_memcpy(&into, &found, sizeof found);
}

template <typename F>
const void* library_of(F function) {
  void* code = nullptr;
  __builtin_memcpy(&code, &function, sizeof code);
  Dl_info about{};
  return ::dladdr(code, &about) != 0 ? about.dli_fbase : nullptr;
}

// The calls on mappings, as the C library makes them.
void* map_directly(void* a, size_t n, int protection, int flags, int fd, off_t at) {
  return reinterpret_cast<void*>(table.syscall(SYS_mmap, a, n, protection, flags, fd, at));
}
int unmap_directly(void* a, size_t n) { return static_cast<int>(table.syscall(SYS_munmap, a, n)); }
void* remap_directly(void* a, size_t n, size_t m, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  void* const to = va_arg(arguments, void*);  // read even if it was not passed, as there
  va_end(arguments);
  return reinterpret_cast<void*>(table.syscall(SYS_mremap, a, n, m, flags, to));
}

// A library behind this one that takes over the calls on mappings (tcmalloc of gperftools counts
// them) makes them by syscall(), which is ours, too: it would come back to us without end. So its
// functions are left out.
void leave_out_hooks(Real& found) {
  const void* const library = library_of(found.syscall);
  if (library_of(found.mmap) != library) found.mmap = map_directly;
  if (library_of(found.munmap) != library) found.munmap = unmap_directly;
  if (library_of(found.mremap) != library) found.mremap = remap_directly;
}

void look_all_up() {
  Real found;
#define OUTCORE_LOOK_UP(result, name, parameters) look_up(found.name, #name);
  OUTCORE_CALLS(OUTCORE_LOOK_UP)
#undef OUTCORE_LOOK_UP
  leave_out_hooks(found);
  table = found;
  is_looked_up.store(true, std::memory_order_release);
}

}  // namespace

// Two threads may look up at once: they write the same values.
const Real& real() {
  if (!is_looked_up.load(std::memory_order_acquire)) look_all_up();
  return table;
}

void replace_real(const Real& now) {
  static_cast<void>(real());
#define OUTCORE_REPLACE(result, name, parameters) \
  __atomic_store_n(&table.name, now.name, __ATOMIC_RELEASE);
  OUTCORE_CALLS(OUTCORE_REPLACE)
#undef OUTCORE_REPLACE
}

}  // namespace outcore::preload
