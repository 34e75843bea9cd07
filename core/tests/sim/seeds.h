// Seeds: how simulations choose theirs by the environment, and what is printed of one that fails.
// OUTCORE_SIM_SEEDS=N runs N seeds of each kind, OUTCORE_SIM_FROM=S those from S on,
// OUTCORE_TEST_SHARE=N one part in N of the usual ones, OUTCORE_SIM_SEED=S only that one;
// OUTCORE_SIM_TRACE=1 prints every event.
#pragma once

#include <cstdint>
#include <string>

#include "core/tests/sim/fibers.h"

namespace outcore::sim {

uint64_t number_from(const char* variable, uint64_t otherwise);

struct SeedRange {
  uint64_t first = 1, count = 0;
};
SeedRange seeds_to_run(uint64_t usual);

// "seed 42: … replay: …".
std::string title_of(uint64_t seed, const std::string& plan, const std::string& test);

// While it exists, an assertion of the engine that fails prints the seed and the last events.
class SeedUnderWay {
 public:
  SeedUnderWay(const Fibers& fibers, const std::string& title);
  ~SeedUnderWay();
  SeedUnderWay(const SeedUnderWay&) = delete;
  SeedUnderWay& operator=(const SeedUnderWay&) = delete;
};

}  // namespace outcore::sim
