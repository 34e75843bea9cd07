// AtFork: what Outcore does around fork(), in one fixed order, whichever part registers first; and
// the number of forks between this process and the one that loaded the library.
//
// One handler is registered with pthread_atfork() when the library is loaded. As with
// pthread_atfork, `before` handlers run in reverse order, the `after` handlers in the order of
// ForkOrder: a lock of ForkOrder::kX may be held where locks that come before kX are taken, never
// where one that comes after it is. The handlers run with all signals blocked except those of
// faults, so no signal handler runs while they hold locks.
#pragma once

#include <cstdint>

namespace outcore::os {

enum class ForkOrder : uint8_t {
  kOwnMemory,     // the memory of the library of `outcore run`: all others may allocate
  kDescriptors,   // ParentsDescriptors: descriptors that later handlers list in a child are its own
  kRuntime,       // takes the process's locks; `outcore run`: all of its own
  kReleaseLink,   // `outcore run`: descriptors that a child does not keep
  kRequests,      // likewise
  kHeapMappings,  // heaps: what the kernel maps of them
  kHeapThreads,   // heaps: which threads have caches
  kDefaultHeap,   // C: the default heap's creation is finished, or not begun
  kStaticArrays,  // C: likewise
  kCount
};

// Registers handlers for all later forks; nullptr: none. A second call with the same order changes
// nothing. Any thread, also within a handler.
void at_fork(ForkOrder order, void (*before)(), void (*after_in_parent)(),
             void (*after_in_child)());

// Identifies the process; never 0. A forked child has another one before any of its handlers runs.
// Any thread, the fault path.
uint32_t process_generation();

// Whether this process runs in the memory of another, as a child of vfork() does until it executes:
// what it starts here ends with it, and what it changes stays. The fault path.
bool is_in_others_memory();

}  // namespace outcore::os
