// Stage: what all processes of a storm share: the files' model, the actors, and whose turn it is.
//
// It lies in a memfd that is mapped by raw system calls at one address in every process, so that no
// preloaded library has a part in it, and pointers into it hold after an exec.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace storm {

inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint64_t kFileBytesMax = 768 * 1024;
inline constexpr unsigned kFilesMax = 16;
inline constexpr unsigned kProcessesMax = 5;  // alive at once; the first one is the conductor's
inline constexpr unsigned kThreadsMax = 3;
inline constexpr unsigned kShrinksMax = 512;
inline constexpr unsigned kActorsMax = kProcessesMax * kThreadsMax;

// The bytes that a file must have; those behind its size are zero.
struct File {
  uint64_t size;
  uint32_t shrinks;                 // how often it was made shorter
  uint32_t shrunk_to[kShrinksMax];  // pages that were left each time
};

// A thread that waits until it is its turn.
struct Actor {
  std::atomic<uint32_t> turns;  // given so far; the actor sleeps on this word
};

struct Process {
  pid_t pid;
  unsigned parent;
  bool is_alive;
};

// What an actor's turn is about.
enum class Phase : uint32_t { kStep, kTogether, kReceive, kReap, kEnd };

struct Descriptor {
  bool is_used;
  bool may_read;
  bool may_write;
  bool is_appending;
  int number;
  unsigned file;
};

// A range of a file that one actor alone may write for the time of a step.
struct Range {
  unsigned file;
  uint64_t from;
  uint64_t end;
};

struct Stage {
  uint64_t seed;
  unsigned threads;
  unsigned level;  // of the kinds of steps
  pid_t conductor;
  char program[256];
  unsigned files;  // that have been made
  uint64_t step;
  unsigned kind;  // of the step
  Phase phase;
  std::atomic<uint32_t> at_work;  // turns that have not ended; the conductor sleeps on this word
  std::atomic<uint32_t> has_failed;
  Actor actors[kActorsMax];
  Process processes[kProcessesMax];
  File file[kFilesMax];
  Range ranges[kActorsMax];

  // What the step asks for when its turn has ended.
  bool is_for_all;      // all take part
  unsigned receiver;    // the process to which a descriptor was passed; kProcessesMax: none
  Descriptor passed;    // what it is
  unsigned reaped;      // the process that is to be waited for; kProcessesMax: none
  int expected_status;  // of that one, as by waitpid
};

extern Stage* stage;

// Makes it, or (in a process that was executed) opens that of the conductor.
void make_stage();
void open_stage(pid_t conductor, int number);
int stage_number();  // its descriptor in the conductor

uint8_t* bytes_of(unsigned file);
inline uint64_t pages_of(unsigned file) {
  return (stage->file[file].size + kPageBytes - 1) / kPageBytes;
}
void write_model(unsigned file, uint64_t at, const uint8_t* from, uint64_t count);
void zero_model(unsigned file, uint64_t at, uint64_t count);
void resize_model(unsigned file, uint64_t size);
void path_of(unsigned file, char (&path)[16]);

// Memory that no preloaded library can have taken over.
uint8_t* allocate_raw(uint64_t count);

// Sleeps while the word is `value`, a second at most; wakes all that sleep on it.
void sleep_on(std::atomic<uint32_t>& word, uint32_t value);
void wake(std::atomic<uint32_t>& word);

// A process of this storm that has ended though it should not have.
bool has_ended(const Process& process);

}  // namespace storm
