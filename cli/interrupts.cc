#include "cli/interrupts.h"

#include <signal.h>
#include <time.h>

#include <atomic>
#include <cstdint>

namespace outcore::cli {
namespace {

std::atomic<bool> is_noted{false};

uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// One interrupt may come twice (`timeout`, and terminals, tell the process and its group). Whoever
// interrupts again later wants the end at once.
void on_interrupt(int signal) {
  static std::atomic<uint64_t> first_ns{0};
  uint64_t none = 0;
  const uint64_t now = now_ns();
  is_noted = true;
  if (first_ns.compare_exchange_strong(none, now) || now - none < 1'000'000'000) return;
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

bool is_interrupted() { return is_noted.load(); }

}  // namespace outcore::cli
