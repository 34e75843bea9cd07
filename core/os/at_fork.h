// AtFork: what Outcore does around fork(), in one order, whoever begins first; and how many forks
// lie between this process and the one that loaded the library.
//
// One handler is registered with pthread_atfork() when the library is loaded. As there, what comes
// last in the order is called first before fork(), and last after it: a lock of ForkOrder::kX may
// be held where locks that come before kX are taken, never where one that comes after it is. The
// handlers run with signals blocked, but those of faults: no signal handler meets what they hold.
#pragma once

#include <cstdint>

namespace outcore::os {

enum class ForkOrder : uint8_t {
  kOwnMemory,     // the memory of the library of `outcore run`: all others may allocate
  kDescriptors,   // ParentsDescriptors: what the handlers below list in a child is its own
  kRuntime,       // takes the process's locks; `outcore run`: all of its own
  kReleaseLink,   // `outcore run`: descriptors that a child does not keep
  kRequests,      // likewise
  kHeapMappings,  // heaps: what the kernel maps of them
  kHeapThreads,   // heaps: which threads have caches
  kDefaultHeap,   // C: it is made, or not
  kStaticArrays,  // C: likewise
  kCount
};

// Has them called from the next fork() on; nullptr: nothing is to do. A second call with the same
// order changes nothing. Any thread, also within a handler.
void at_fork(ForkOrder order, void (*before)(), void (*after_in_parent)(),
             void (*after_in_child)());

// Never 0. Another one in a forked child, before any of its handlers is called. Any thread, the
// fault path.
uint32_t process_generation();

// Whether this process runs in the memory of another, as a child of vfork() does until it executes:
// what it starts here ends with it, and what it changes stays. The fault path.
bool is_in_others_memory();

}  // namespace outcore::os
