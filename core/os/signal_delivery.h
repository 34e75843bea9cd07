// Signal delivery: answers faults in the faulting thread, by handlers for SIGBUS (userfaultfd in
// SIGBUS mode) and SIGSEGV (mprotect).
//
// The handlers run with every signal blocked, on the alternate stack if the thread has one. A fault
// that is not Outcore's, or whose fill failed, is passed to the handler that was installed before.
// If there was none, the process ends with the signal, as it would without Outcore, after one line
// that says why.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>

namespace outcore::os {

enum class FaultOutcome {
  kDone,  // the touch can be repeated
  kNotOurs,
  kFailed,  // the page cannot be filled: the thread gets its signal
};

struct Touch {
  std::byte* address = nullptr;
  bool is_write = false;
  // Who touched: the instruction, or where only the thread is known (messages), the thread.
  uint64_t site = 0;
  // When at the earliest somebody else heard of it who answers it (messages); else later than all.
  uint64_t heard_ns = UINT64_MAX;
};

// How much of its stack the handler of a fault needs, at most; eviction and write-back included
// (measured by a test). The kernel's own frame comes on top: 2,953 bytes with AVX-512.
inline constexpr size_t kHandlerRoomBytes = 4672;

// Answers a fault. Called on the fault path, by the faulting thread or an event thread. Must be
// async-signal-safe.
using FaultFunction = FaultOutcome (*)(const Touch& touch);
// Why the last fault of this thread failed, in one line, for when the process ends. The fault path.
using ReasonFunction = const char* (*)();

// Install the handler, once per process and signal. Any thread.
void install_bus_handler(FaultFunction on_fault, ReasonFunction reason);
void install_segv_handler(FaultFunction on_fault, ReasonFunction reason);
// For `outcore run`, which stands between the program and sigaction(2): sets and gets what the
// program wants done with SIGBUS or SIGSEGV, while our handler stays installed. False if ours is
// not installed. Any thread.
bool exchange_program_action(int signal, const struct sigaction* now, struct sigaction* before);
// For `outcore run`, which does not really let the program block the signal: the query says whether
// the program believes that this thread blocks it. Then a fault that nobody answers ends the
// process, as it would without Outcore. The fault path.
void set_block_query(bool (*is_thought_blocked)(int signal));
// `f` is called before the process ends because of a fault that nobody handles. It runs in the
// signal handler.
void set_last_words(void (*f)());
// True: the fault that this thread is answering must be refused, because the stack of its handler
// would overflow into memory of the program. The fault path.
bool is_handler_stack_too_small();
// Copies as a system call would: false if a part cannot be touched, whatever handlers the program
// has. REQUIRES: the handlers are installed.
bool copy_or_fail(void* into, const void* from, size_t size_bytes);
// True if the program has replaced our handler, by a call that nobody saw.
bool is_segv_handler_replaced();
bool is_bus_handler_replaced();

}  // namespace outcore::os
