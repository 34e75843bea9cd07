// Turn: what an actor has while it acts: its generator, the step's line of output, and its verdict.
#pragma once

#include "run/tests/preload/programs/sequence_random.h"
#include "stage.h"

namespace storm {

using sequence::Hash;
using sequence::Random;

struct Me {
  unsigned process = 0;
  unsigned thread = 0;
  unsigned actor() const { return process * kThreadsMax + thread; }
};
extern thread_local Me me;
extern thread_local Random random;
extern thread_local Hash seen;
// What this thread does of a step that several take part in, for its verdict.
extern thread_local const char* deed;

// Adds to the step's line. Called by whoever has the turn alone; end_line() prints it.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);
void begin_line(const char* kind);
void end_line();

// What was seen is not what must be: says so, and ends this process; the conductor ends the others.
[[noreturn, gnu::format(printf, 1, 2)]] void mismatch(const char* format, ...);

// A call's value, or its error as a negative number.
inline constexpr long kAnything = INT64_MIN;
long outcome(long value);
// Says an outcome. What was expected and did not come is a mismatch.
long answer(long got, long expected);
// As answer(), but says nothing: for what several do at once.
void expect(long got, long expected, const char* what);

// Compares bytes with what they must be, and adds them to the hash. `what` and the numbers name
// them where they differ.
void check_bytes(const uint8_t* got, const uint8_t* expected, uint64_t count, const char* what,
                 unsigned index, uint64_t at);

// Handlers that make a signal of a touch a mismatch, and those of fork().
void install_handlers();

}  // namespace storm
