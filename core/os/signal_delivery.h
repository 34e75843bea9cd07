// Signal delivery: faults answered in the faulting thread. SIGBUS for userfaultfd (SIGBUS mode),
// SIGSEGV for mprotect.
//
// The handlers run with every signal blocked, on the alternate stack where the thread has one. A
// fault that is not ours, or that failed, goes to the handler that was there before; where there
// was none, the process ends with the signal, as it would have without us, after one line that says
// why.
#pragma once

#include <signal.h>

#include <cstddef>

namespace outcore::os {

enum class FaultOutcome {
  kDone,  // the touch can be tried again
  kNotOurs,
  kFailed,  // the page cannot be had: the thread gets its signal
};

struct Touch {
  std::byte* address = nullptr;
  bool is_write = false;
};

// Called on the fault path, by the faulting thread or an event thread. Must be async-signal-safe.
using FaultFunction = FaultOutcome (*)(std::byte* address, bool is_write);
// Why the last fault of this thread failed, one line, for the default disposition. The fault path.
using ReasonFunction = const char* (*)();

// Installs the handler once per process and signal. Any thread.
void install_bus_handler(FaultFunction on_fault, ReasonFunction reason);
void install_segv_handler(FaultFunction on_fault, ReasonFunction reason);
// For a door that stands between the program and sigaction(2): what the program wants done with
// SIGBUS or SIGSEGV, while ours stays in force. False if ours is not installed. Any thread.
bool exchange_program_action(int signal, const struct sigaction* now, struct sigaction* before);
// What a door keeps from blocking the signal, where the program thinks that this thread blocks it:
// then a fault that nobody answers ends the process, as it would. The fault path.
void set_block_query(bool (*is_thought_blocked)(int signal));
// Called before the process ends by a fault that nobody handles. Async-signal-safe enough for its
// caller: it runs in the handler.
void set_last_words(void (*f)());
// The fault that this thread is answering must be refused: the stack that its handlers run on would
// be overrun, and with it memory of the program's. The fault path.
bool is_handler_stack_too_small();
// Copies as a system call would: false if some of it cannot be touched, whatever handlers the
// program has. REQUIRES: the handlers are installed.
bool copy_or_fail(void* into, const void* from, size_t size_bytes);
// The handler in force is no longer ours (the program installed its own after us).
bool is_segv_handler_replaced();

}  // namespace outcore::os
