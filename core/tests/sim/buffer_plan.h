// BufferPlan: everything that the seed of a simulated buffer decides.
#pragma once

#include <cstdint>
#include <string>

#include "core/tests/sim/buffer_file.h"
#include "core/tests/sim/buffer_kernel.h"

namespace outcore::sim {

struct BufferPlan {
  enum class Kind : uint8_t { kRead, kWritten };

  uint64_t seed = 0;
  Kind kind = Kind::kRead;
  uint64_t file_pages = 0, room_pages = 0;  // the latter: for pages of the file, in memory
  uint64_t interleave_every = 1;            // words, for each point
  unsigned processes = 2;                   // at a time
  unsigned lives = 4;                       // processes, in all
  unsigned threads_max = 2;                 // of a program
  uint64_t ops = 0;                         // of each thread
  uint64_t readers = 0;                     // processes that only read, in thousandths
  uint64_t kills = 0;                       // of what befalls processes, in thousandths; the rest
                                            // of them are stopped for a while
  uint64_t blow_ns_max = 0;                 // between two of those; 0: there are none
  bool has_long_stops = false;              // longer than others wait
  uint64_t wait_ns_max = 0;
  BufferStore::Behaviour behaviour;
  BufferSimFrames::Defect defect = BufferSimFrames::Defect::kNone;

  bool has_stops() const { return blow_ns_max != 0 && kills < 1000; }
  bool has_failures() const {
    return behaviour.read_failures != 0 || behaviour.write_failures != 0;
  }
  // A touch, or a flush, may fail.
  bool may_fail() const { return (has_stops() && has_long_stops) || has_failures(); }

  static BufferPlan make(uint64_t seed, Kind kind);
  std::string describe() const;
};

}  // namespace outcore::sim
