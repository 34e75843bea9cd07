// The linker's --wrap sends the library's own allocations here (cmake/preload.cmake).
#include "run/preload/own_heap.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <link.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "run/preload/own_memory.h"
#include "run/preload/real_heap.h"

namespace outcore::preload {
namespace {

// The C library's own malloc, whatever allocator the program has; nullptr: it was not found.
void* c_library_malloc() {
  void* library = ::dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : ::dlsym(library, "malloc");
}

uintptr_t code_low = 0, code_bytes = 0;

// Notes where the code of the library lies that is loaded at `base`.
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

bool is_another_heap_there() {
  real_heap.free(real_heap.malloc(1));  // makes sure that malloc is looked up
  void* malloc_code = nullptr;
  __builtin_memcpy(&malloc_code, &real_heap.malloc, sizeof malloc_code);
  void* const c_librarys = c_library_malloc();
  if (c_librarys == nullptr || malloc_code == c_librarys) return false;
  Dl_info about{};
  if (::dladdr(malloc_code, &about) != 0) ::dl_iterate_phdr(note_code, about.dli_fbase);
  return true;
}

bool is_code_of_another_heap(const void* address) {
  return reinterpret_cast<uintptr_t>(address) - code_low < code_bytes;
}

}  // namespace outcore::preload

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this folder

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" {

void* __wrap_malloc(size_t bytes) { return OwnMemory::allocate(bytes, 16); }

void* __wrap_calloc(size_t count, size_t bytes) {
  size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) return errno = ENOMEM, nullptr;
  void* p = OwnMemory::allocate(total, 16);
  if (p != nullptr) std::memset(p, 0, total);
  return p;
}

// What the C library has allocated on our behalf lies in the program's heap.
void __wrap_free(void* p) {
  if (p == nullptr) return;
  if (OwnMemory::has(p))
    OwnMemory::release(p);
  else
    real_heap.free(p);
}

void* __wrap_realloc(void* p, size_t bytes) {
  if (p != nullptr && !OwnMemory::has(p)) return real_heap.realloc(p, bytes);
  void* to = OwnMemory::allocate(bytes, 16);
  if (to == nullptr || p == nullptr) return to;
  std::memcpy(to, p, std::min(bytes, OwnMemory::usable_bytes(p)));
  OwnMemory::release(p);
  return to;
}

void* __wrap_memalign(size_t alignment, size_t bytes) {
  return OwnMemory::allocate(bytes, alignment);
}
void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return OwnMemory::allocate(bytes, alignment);
}

int __wrap_posix_memalign(void** into, size_t alignment, size_t bytes) {
  const int saved_errno = errno;
  *into = OwnMemory::allocate(bytes, alignment);
  errno = saved_errno;
  return *into != nullptr ? 0 : ENOMEM;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
