// Ranges: memory that is handed to the kernel because a call needs something that only the kernel
// can do.
#pragma once

#include <cstddef>

// Not in the headers of Debian 12.
extern "C" int mseal(void* address, size_t size, unsigned long flags) noexcept;

namespace outcore::preload {

// Hands everything in the range that is ours, of files and of the heap, to the kernel, in place and
// with its bytes. A file is handed over as a whole. 0 or an errno. Any thread of the program.
int leave_to_kernel(const void* address, size_t size_bytes, const char* why);

// The same for the whole pages around a range that may begin anywhere.
int leave_around(const void* address, size_t size_bytes, const char* why);
// The same for a stack, of which the kernel gets the pages that are its alone. The kernel puts
// frames of signals on it, and a thread begins there with all signals blocked: where faults are
// answered by signals, neither may find an absent page.
int leave_stack(const void* stack, size_t size_bytes);
// Whether the range has allocated memory of ours whose faults are answered by signals.
bool is_heap_without_messages(const void* address, size_t size_bytes);

// Whether only the kernel can carry out this advice of madvise.
bool is_kernels_advice(int advice);

}  // namespace outcore::preload
