// PauseWatch: the longest time in which work stood still, as when a server of its data has died.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace outcore::bench {

// One thread. It looks every 10 ms, so a pause is told to about that.
class PauseWatch {
 public:
  // progress() grows while work goes on; called by a thread of the watch.
  explicit PauseWatch(std::function<uint64_t()> progress);
  ~PauseWatch() { stop(); }
  PauseWatch(const PauseWatch&) = delete;
  PauseWatch& operator=(const PauseWatch&) = delete;
  double stop();  // seconds of the longest pause

 private:
  void watch();
  std::function<uint64_t()> progress_;
  std::atomic<bool> is_over_{false};
  uint64_t longest_ns_ = 0;
  std::thread thread_;  // after all that it uses
};

}  // namespace outcore::bench
