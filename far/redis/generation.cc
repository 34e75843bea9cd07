#include "far/redis/generation.h"

#include <pthread.h>

#include "core/base/assert.h"

namespace outcore::redis {
namespace {

std::atomic<uint32_t> current{1};

// At load: the fault path has no time for it.
__attribute__((constructor)) void count_forks() {
  OC_CHECK(::pthread_atfork(nullptr, nullptr,
                            [] { current.fetch_add(1, std::memory_order_relaxed); }) == 0);
}

}  // namespace

uint32_t generation() { return current.load(std::memory_order_relaxed); }

}  // namespace outcore::redis
