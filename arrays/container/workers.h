// Workers: threads that exist for the length of one call; the calling thread is one of them.
#pragma once

#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "core/os/wait.h"

namespace outcore::arrays {

inline constexpr unsigned kWorkersMax = 4;
inline constexpr uint64_t kPieceBytes = 4 << 20;  // of a long run, by one thread at a time

// Calls work() in so many threads at once, the caller's among them; in fewer, if the system has no
// more. Signals for the program do not reach the other threads. Returns when all calls have
// returned.
template <typename Work>
void run_by_workers(uint64_t count, const Work& work) {
  std::vector<std::thread> others;
  {
    const os::SignalBlock block;  // the new threads inherit it
    try {
      for (uint64_t t = 1; t < count; ++t) others.emplace_back(work);
    } catch (const std::exception&) {  // go on with fewer
    }
  }
  work();
  for (std::thread& other : others) other.join();
}

}  // namespace outcore::arrays
