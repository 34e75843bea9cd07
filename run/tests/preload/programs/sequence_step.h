// Step: one step's generator, its line of output, and the faults that it expects.
#pragma once

#include <csetjmp>
#include <csignal>
#include <cstdint>

#include "sequence_model.h"
#include "sequence_random.h"

namespace sequence {

struct Options {
  uint64_t seed = 1;
  uint64_t steps = 100;
  uint64_t from = 0;  // the first step: not 0 after an exec
  uint64_t file_bytes = 512 * 1024;
  unsigned threads = 2;
  const char* folder = nullptr;
  const char* only = nullptr;
  const char* without = nullptr;
  const char* state = nullptr;  // of the files, handed on by an exec
};
extern Options options;

// Of the step that runs.
extern uint64_t step_number;
extern Random random;
extern Hash seen;

// Adds to the step's line; end_line() prints it.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);
void begin_line(const char* kind);
void end_line();

// What was seen is not what must be: says so, with the line so far, and ends the program.
[[noreturn, gnu::format(printf, 1, 2)]] void mismatch(const char* format, ...);

// A call's value, or its error as a negative number.
inline constexpr long kAnything = INT64_MIN;
long outcome(long value);
// Says an outcome. What was expected and did not come is a mismatch.
long answer(long got, long expected);

// Compares memory with the model, and adds what it sees to the hash.
void check_memory(const Bytes& where);
// All that may be read of the span, at most so many bytes of each page from its begin.
void check_span(const Span& s, uint64_t bytes_max);
// Reads part of a file by pread and compares it. `number` -1: by a descriptor of its own.
void check_file(unsigned file, uint64_t at, uint64_t count, int number);
// All files and all memory.
void check_everything();

// What a touch brought: no signal, or which one.
struct Fault {
  int signal;
  int code;
  uint8_t* address;
  bool was_on_stack_of_signals;
};
// Our handlers of SIGSEGV and SIGBUS. `flags`: SA_ONSTACK or 0.
void install_handlers(int flags);
// Reads or writes one byte.
Fault touch(uint8_t* at, bool is_write, uint8_t* value);
// What a touch of this page must bring.
Fault expected_fault(const Page& page, uint8_t* at, bool is_write);
// Touches a byte as the model says it must go, and says how it went.
void touch_and_check(unsigned area, uint64_t offset, bool is_write);

// The stack that sigaltstack gets, and whether an address lies in it.
inline constexpr uint64_t kSignalStackBytes = 64 * 1024;
extern uint8_t signal_stack[kSignalStackBytes];

}  // namespace sequence
