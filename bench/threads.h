// Threads: those that a workload runs on, and those that make its data.
#pragma once

#include <functional>

namespace outcore::bench {

// Runs `work(thread)` on so many threads and waits for all.
void on_threads(unsigned threads, const std::function<void(unsigned)>& work);
// How many threads make data: what is made is the same for any number.
unsigned making_threads();

}  // namespace outcore::bench
