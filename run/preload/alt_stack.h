// AltStack: stacks for signal handlers, as the program sets them by sigaltstack(). Where one is so
// small that answering a fault would overrun it, the kernel is given a larger one of ours in its
// place; the program is told its own. Any thread.
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
