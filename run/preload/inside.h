// Inside: this library's own calls go past the program's. The library is linked so that what it
// calls itself (mmap, read, open …) reaches the real functions; what the C library calls on its
// behalf (malloc, say) is told by a mark of the thread.
#pragma once

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::preload {

extern constinit thread_local unsigned inside_depth;

inline bool is_inside() { return inside_depth != 0; }

// The calling thread is one of ours: nothing that it calls is the program's, no signal reaches it.
void become_ours(const char* name);

// While it lives, calls of this thread are not taken over, and no signal handler of the program's
// runs in it.
class Inside {
 public:
  Inside() { ++inside_depth; }
  ~Inside() {
    OC_ASSERT(inside_depth != 0);
    --inside_depth;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  const os::SignalBlock block_;
};

}  // namespace outcore::preload
