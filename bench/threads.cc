#include "bench/threads.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace outcore::bench {

void on_threads(unsigned threads, const std::function<void(unsigned)>& work) {
  std::vector<std::thread> running;
  running.reserve(threads);
  for (unsigned t = 1; t < threads; ++t) running.emplace_back(work, t);
  work(0);
  for (std::thread& thread : running) thread.join();
}

unsigned making_threads() {
  static constexpr unsigned kMakingThreadsMax = 16;
  return std::clamp(std::thread::hardware_concurrency(), 1U, kMakingThreadsMax);
}

}  // namespace outcore::bench
