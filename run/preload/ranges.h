// Ranges: memory that is left to the kernel because a call needs what only the kernel can do.
#pragma once

#include <cstddef>

// Newer than the headers of Debian 12.
extern "C" int mseal(void* address, size_t size, unsigned long flags) noexcept;

namespace outcore::preload {

// What is ours of the range, of files and of the heap, is the kernel's from now on: in place, with
// its bytes. A file goes back as a whole. 0 or an errno. Any thread of the program.
int leave_to_kernel(const void* address, size_t size_bytes, const char* why);

// Of madvise: only the kernel can do it.
bool is_kernels_advice(int advice);

}  // namespace outcore::preload
