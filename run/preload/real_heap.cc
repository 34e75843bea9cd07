#include "run/preload/real_heap.h"

#include <dlfcn.h>
#include <link.h>

#include <cerrno>
#include <cstdlib>

#include "run/preload/bootstrap_memory.h"

namespace outcore::preload {
namespace {

constinit thread_local bool is_looking_up = false;

// If the program itself, or a library before this one, defines the function, the C library uses
// that one, too, and so do we. Otherwise the real one is that of the next library.
template <typename F>
bool look_up(F& into, const char* name, const char* marker) {
  Dl_info found_in{}, us{};
  ElfW(Sym)* symbol = nullptr;
  void* found = ::dlsym(RTLD_DEFAULT, name);
  // A program that uses the function's address has an entry of its own for it, which leads to us.
  const bool is_entry =
      found != nullptr &&
      ::dladdr1(found, &found_in, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) != 0 &&
      symbol != nullptr && symbol->st_shndx == SHN_UNDEF;
  const bool is_ours = found != nullptr && ::dladdr(found, &found_in) != 0 &&
                       ::dladdr(marker, &us) != 0 && found_in.dli_fbase == us.dli_fbase;
  if (is_ours || is_entry || found == nullptr) found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) return false;
  __builtin_memcpy(&into, &found, sizeof found);
  return true;
}

// Two threads may look up at once: they write the same values.
void look_heap_up() {
  static const char marker = 0;
  is_looking_up = true;
  RealHeap found = real_heap;
#define OUTCORE_LOOK_UP(result, name, parameters) look_up(found.name, #name, &marker);
  OUTCORE_HEAP_CALLS(OUTCORE_LOOK_UP)
#undef OUTCORE_LOOK_UP
  real_heap = found;
  is_looking_up = false;
}

// Looks the functions up. False within the look-up itself: its own calls cannot use them yet.
bool is_ready() {
  if (is_looking_up) return false;
  look_heap_up();
  return true;
}

void* first_malloc(size_t bytes) {
  return is_ready() ? real_heap.malloc(bytes) : BootstrapMemory::allocate(bytes, 16);
}
void* first_calloc(size_t count, size_t bytes) {
  return is_ready() ? real_heap.calloc(count, bytes) : BootstrapMemory::allocate(count * bytes, 16);
}
void* first_realloc(void* p, size_t bytes) {
  if (is_ready()) return real_heap.realloc(p, bytes);
  void* to = BootstrapMemory::allocate(bytes, 16);
  if (to != nullptr && p != nullptr && BootstrapMemory::has(p)) {
    const size_t rest = BootstrapMemory::bytes_from(p);
    __builtin_memcpy(to, p, bytes < rest ? bytes : rest);
  }
  return to;
}
void first_free(void* p) {
  if (is_ready()) real_heap.free(p);
}
void* first_aligned_alloc(size_t alignment, size_t bytes) {
  return is_ready() ? real_heap.aligned_alloc(alignment, bytes)
                    : BootstrapMemory::allocate(bytes, alignment);
}
int first_posix_memalign(void** into, size_t alignment, size_t bytes) {
  if (is_ready()) return real_heap.posix_memalign(into, alignment, bytes);
  *into = BootstrapMemory::allocate(bytes, alignment);
  return *into != nullptr ? 0 : ENOMEM;
}
void* first_memalign(size_t alignment, size_t bytes) {
  return is_ready() ? real_heap.memalign(alignment, bytes)
                    : BootstrapMemory::allocate(bytes, alignment);
}
void* first_valloc(size_t bytes) {
  return is_ready() ? real_heap.valloc(bytes) : BootstrapMemory::allocate(bytes, 4096);
}
void* first_pvalloc(size_t bytes) {
  return is_ready() ? real_heap.pvalloc(bytes) : BootstrapMemory::allocate(bytes, 4096);
}
size_t first_malloc_usable_size(void* p) {
  return is_ready() ? real_heap.malloc_usable_size(p) : 0;
}

}  // namespace

constinit RealHeap real_heap = {
    first_malloc,         first_calloc,   first_realloc, first_free,    first_aligned_alloc,
    first_posix_memalign, first_memalign, first_valloc,  first_pvalloc, first_malloc_usable_size};

}  // namespace outcore::preload
