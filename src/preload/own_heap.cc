// The linker's --wrap sends what the library allocates here (cmake/preload.cmake).
#include "preload/own_heap.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "preload/bootstrap_memory.h"
#include "preload/real_heap.h"

namespace outcore::preload {
namespace {

RealHeap own;
std::atomic<bool> is_looked_up{false};

template <typename F>
void look_up(void* library, F& into, const char* name) {
  void* found = ::dlsym(library, name);
  __builtin_memcpy(&into, &found, sizeof found);
}

// False: not yet.
bool is_ready() { return is_looked_up.load(std::memory_order_acquire); }

void* take(size_t bytes, size_t alignment) {
  if (!is_ready()) {
    if (void* p = BootstrapMemory::allocate(bytes, alignment); p != nullptr) return p;
    prepare_own_heap();
  }
  return alignment <= 16 ? own.malloc(bytes) : own.memalign(alignment, bytes);
}

uintptr_t code_low = 0, code_bytes = 0;

// Of the library that is loaded at `base`.
int note_code(dl_phdr_info* library, size_t, void* base) {
  uintptr_t end = 0;
  for (int i = 0; i < library->dlpi_phnum; ++i)
    if (const auto& segment = library->dlpi_phdr[i]; segment.p_type == PT_LOAD)
      end = std::max<uintptr_t>(end, library->dlpi_addr + segment.p_vaddr + segment.p_memsz);
  const auto low = reinterpret_cast<uintptr_t>(base);
  if (low < library->dlpi_addr || low >= end) return 0;
  code_low = low;
  code_bytes = end - low;
  return 1;
}

}  // namespace

// Two threads may look up at once: they write the same values.
void prepare_own_heap() {
  void* library = is_ready() ? nullptr : ::dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
#define OUTCORE_LOOK_UP(result, name, parameters) look_up(library, own.name, #name);
  OUTCORE_HEAP_CALLS(OUTCORE_LOOK_UP)
#undef OUTCORE_LOOK_UP
  is_looked_up.store(true, std::memory_order_release);
}

bool is_another_heap_there() {
  real_heap.free(real_heap.malloc(1));  // looks it up
  if (!is_ready() || real_heap.malloc == own.malloc) return false;
  Dl_info about{};
  void* malloc_code = nullptr;
  __builtin_memcpy(&malloc_code, &real_heap.malloc, sizeof malloc_code);
  if (::dladdr(malloc_code, &about) != 0) ::dl_iterate_phdr(note_code, about.dli_fbase);
  return true;
}

bool is_code_of_another_heap(const void* address) {
  return reinterpret_cast<uintptr_t>(address) - code_low < code_bytes;
}

}  // namespace outcore::preload

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {

void* __wrap_malloc(size_t bytes) { return take(bytes, 16); }

void* __wrap_calloc(size_t count, size_t bytes) {
  if (is_ready()) return own.calloc(count, bytes);
  size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) return errno = ENOMEM, nullptr;
  void* p = take(total, 16);
  if (p != nullptr) std::memset(p, 0, total);
  return p;
}

void __wrap_free(void* p) {
  if (!BootstrapMemory::has(p) && is_ready()) own.free(p);
}

void* __wrap_realloc(void* p, size_t bytes) {
  if (is_ready() && !BootstrapMemory::has(p)) return own.realloc(p, bytes);
  void* to = take(bytes, 16);
  if (to != nullptr && p != nullptr)
    std::memcpy(to, p, std::min(bytes, BootstrapMemory::bytes_from(p)));
  return to;
}

void* __wrap_memalign(size_t alignment, size_t bytes) { return take(bytes, alignment); }
void* __wrap_aligned_alloc(size_t alignment, size_t bytes) { return take(bytes, alignment); }

int __wrap_posix_memalign(void** into, size_t alignment, size_t bytes) {
  *into = take(bytes, alignment);
  return *into != nullptr ? 0 : ENOMEM;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
