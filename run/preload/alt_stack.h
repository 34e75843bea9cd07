// AltStack: the stacks for signal handlers that the program sets by sigaltstack(). If one is so
// small that answering a fault would overrun it, the kernel gets a larger stack of ours instead,
// and the program still sees its own. Any thread.
#pragma once

#include <signal.h>

#include <cstddef>

namespace outcore::preload {

class AltStack {
 public:
  // Smaller ones are replaced.
  static constexpr size_t kBytesMin = 16 << 10;

  // As sigaltstack(). Async-signal-safe.
  static int exchange(const stack_t* now, stack_t* before);
};

}  // namespace outcore::preload
