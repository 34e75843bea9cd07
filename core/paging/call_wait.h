// CallWait: how long a call of the program waits for a page that it did not find in memory. It is
// counted by the metrics call_waits and call_wait_ns. Any thread; not within faults, whose waits
// are counted elsewhere. The clock is read only if a page is missing, so a call that finds all
// pages costs nothing.
#pragma once

#include <cstdint>

#include "core/metrics/counter_block.h"

namespace outcore::paging {

class CallWait {
 public:
  explicit CallWait(metrics::CounterBlock& counters) : counters_(counters) {}
  ~CallWait() {
    if (is_begun_) end();
  }
  CallWait(const CallWait&) = delete;
  CallWait& operator=(const CallWait&) = delete;

  // A page is missing: the wait begins. Further calls change nothing.
  void begin();
  // For how many pages at once the call waits: each counts, with its share of the time. 0: the wait
  // is not counted.
  void set_pages(uint64_t pages) { pages_ = pages; }

  // For a thread that waits for another one, which counts the wait: see outcore::UncountedWaits.
  static void leave_out_this_thread(bool is_left_out);

 private:
  void end();

  metrics::CounterBlock& counters_;
  uint64_t start_ns_ = 0;
  uint64_t pages_ = 1;
  bool is_begun_ = false;
};

}  // namespace outcore::paging
