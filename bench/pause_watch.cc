#include "bench/pause_watch.h"

#include <unistd.h>

#include <algorithm>

#include "bench/clock.h"

namespace outcore::bench {

PauseWatch::PauseWatch(std::function<uint64_t()> progress)
    : progress_(std::move(progress)), thread_([this] { watch(); }) {}

void PauseWatch::watch() {
  static constexpr useconds_t kStepUs = 10'000;
  uint64_t last = progress_(), since_ns = now_ns();
  while (!is_over_.load()) {
    usleep(kStepUs);
    const uint64_t seen = progress_(), now = now_ns();
    longest_ns_ = std::max(longest_ns_, now - since_ns);
    if (seen == last) continue;
    last = seen;
    since_ns = now;
  }
}

double PauseWatch::stop() {
  is_over_ = true;
  if (thread_.joinable()) thread_.join();
  return static_cast<double>(longest_ns_) * 1e-9;
}

}  // namespace outcore::bench
