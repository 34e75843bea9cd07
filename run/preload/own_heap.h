// OwnHeap: makes the library's own allocations come from OwnMemory, whatever allocator the program
// has. The program's allocator may call us (mmap) while it holds its locks, so it must not be
// called then. Any thread.
#pragma once

namespace outcore::preload {

// Whether the program's allocator is another one than the C library's. The first call finds out.
bool is_another_heap_there();
// Whether the address is in the code of such an allocator. What it allocates is for itself.
bool is_code_of_another_heap(const void* address);

}  // namespace outcore::preload
