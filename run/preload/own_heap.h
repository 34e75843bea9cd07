// OwnHeap: where this library's own memory comes from: OwnMemory, whatever allocator the program
// has. That one may call us (mmap) with its locks held, and must not be called then. Any thread.
#pragma once

namespace outcore::preload {

// The program's allocator is another than the C library's. Known once this was called.
bool is_another_heap_there();
// The address is in the code of such an allocator, which calls itself and means itself.
bool is_code_of_another_heap(const void* address);

}  // namespace outcore::preload
