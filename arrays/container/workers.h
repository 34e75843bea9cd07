// Workers: threads for the length of one call, the caller's among them.
#pragma once

#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "core/os/wait.h"

namespace outcore::arrays {

inline constexpr unsigned kWorkersMax = 4;
inline constexpr uint64_t kPieceBytes = 4 << 20;  // of a long run, by one thread at a time

// Calls work() in so many threads at once, the caller's always; fewer, if there are no more to
// have. Signals are the program's: none of them reaches the others. Returns when all have returned.
template <typename Work>
void run_by_workers(uint64_t count, const Work& work) {
  std::vector<std::thread> others;
  {
    const os::SignalBlock block;  // inherited
    try {
      for (uint64_t t = 1; t < count; ++t) others.emplace_back(work);
    } catch (const std::exception&) {  // fewer, then
    }
  }
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace outcore::arrays
