#include "run/preload/real.h"

#include <dlfcn.h>

#include <atomic>

namespace outcore::preload {
namespace {

Real table;
std::atomic<bool> is_looked_up{false};

template <typename F>
void look_up(F& into, const char* name) {
  void* found = ::dlsym(RTLD_NEXT, name);
  __builtin_memcpy(&into, &found, sizeof found);
}

void look_all_up() {
#define OUTCORE_LOOK_UP(result, name, parameters) look_up(table.name, #name);
  OUTCORE_CALLS(OUTCORE_LOOK_UP)
#undef OUTCORE_LOOK_UP
  is_looked_up.store(true, std::memory_order_release);
}

}  // namespace

// Two threads may look up at once: they write the same values.
const Real& real() {
  if (!is_looked_up.load(std::memory_order_acquire)) look_all_up();
  return table;
}

void replace_real(const Real& now) {
  static_cast<void>(real());
#define OUTCORE_REPLACE(result, name, parameters) \
  __atomic_store_n(&table.name, now.name, __ATOMIC_RELEASE);
  OUTCORE_CALLS(OUTCORE_REPLACE)
#undef OUTCORE_REPLACE
}

}  // namespace outcore::preload
