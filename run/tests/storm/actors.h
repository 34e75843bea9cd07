// Actors: the threads of a process of a storm, which sleep until it is their turn.
#pragma once

#include "own.h"

namespace storm {

struct Kind {
  const char* name;
  unsigned level;  // 1: one process, 2: several, 3: signals and threads that are cancelled
  unsigned weight;
  void (*run)();
};
extern const Kind kKinds[];
extern const unsigned kKindsCount;

// Starts the threads of this process from `first` on; each waits for its turn from then on.
void start_threads(unsigned process, unsigned first);
// What the first thread of a new process does, for ever. It ends a turn first: that of the actor
// that made the process, or of this process before it was executed.
[[noreturn]] void be_actor(unsigned process);
// Ends a turn. Whoever ends the process ends its turn before.
void end_turn();

// Gives turns to some actors and waits until all have ended; false: one failed or hangs.
bool give_turns(const unsigned* actors, unsigned count, Phase phase);

// A process that is not there yet; kProcessesMax: there are enough.
unsigned free_process();
// What a process does first that was forked or executed: it is alive when it returns.
void begin_process(unsigned process, unsigned parent);
// What an executed process is started with, and the descriptors that it is to inherit.
struct Execution {
  char arguments[5][128];
  char* pointers[6];
  int inherited[kDescriptorsMax];
  unsigned inherited_count;
};
void prepare_execution(Execution& e, unsigned process, unsigned parent);
// Whether the inherited ones survive an exec of this process.
void let_inherit(const Execution& e, bool is_on);
// `storm --process …`: what the executed process is.
[[noreturn]] void be_executed(int count, char** arguments);

// The other processes reach this one by a socket, to pass descriptors.
int mailbox();
void make_mailbox();

}  // namespace storm
