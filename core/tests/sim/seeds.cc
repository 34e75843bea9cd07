#include "core/tests/sim/seeds.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>

#include "core/base/assert.h"
#include "tests/share.h"

namespace outcore::sim {
namespace {

const Fibers* fibers_under_way = nullptr;
const std::string* title_under_way = nullptr;

void on_abort(int) {
  const std::string text =
      *title_under_way + "\n" + fibers_under_way->report("an assertion failed");
  const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  static_cast<void>(ignored);
  ::signal(SIGABRT, SIG_DFL);
  ::abort();
}

}  // namespace

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

SeedRange seeds_to_run(uint64_t usual) {
  if (const uint64_t only = number_from("OUTCORE_SIM_SEED", 0); only != 0) return {only, 1};
  return {number_from("OUTCORE_SIM_FROM", 1),
          number_from("OUTCORE_SIM_SEEDS", scene::share_of(usual))};
}

std::string title_of(uint64_t seed, const std::string& plan, const std::string& test) {
  return "seed " + std::to_string(seed) + ": " + plan +
         "\nreplay: OUTCORE_SIM_SEED=" + std::to_string(seed) +
         " OUTCORE_SIM_TRACE=1 test_sim --gtest_filter=" + test;
}

SeedUnderWay::SeedUnderWay(const Fibers& fibers, const std::string& title) {
  OC_CHECK(fibers_under_way == nullptr);
  fibers_under_way = &fibers;
  title_under_way = &title;
  ::signal(SIGABRT, on_abort);
}

SeedUnderWay::~SeedUnderWay() {
  ::signal(SIGABRT, SIG_DFL);
  fibers_under_way = nullptr;
}

}  // namespace outcore::sim
