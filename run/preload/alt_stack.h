// AltStack: the stacks for signal handlers that the program sets by sigaltstack(). If one is so
// small that answering a fault would overrun it, or lies in the window or in allocated memory of
// ours, the kernel gets a stack of ours instead, and the program still sees its own. Any other is
// the kernel's from then on if it is managed memory: the kernel must find no absent page when it
// begins a handler. Any thread.
#pragma once

#include <signal.h>

#include <cstddef>

namespace outcore::preload {

class AltStack {
 public:
  // Smaller ones are replaced. A fault needs 8 KiB; a trapped system call, whose file may go back
  // to the kernel meanwhile, several times as much.
  static constexpr size_t kBytesMin = 48 << 10;

  // The thread gets one if it has none; sigaltstack() goes on to say that it has none. So a fault
  // needs no room on the stack that the thread is on, which may be a small coroutine's.
  static void provide();
  // As sigaltstack(). Async-signal-safe.
  static int exchange(const stack_t* now, stack_t* before);
};

}  // namespace outcore::preload
