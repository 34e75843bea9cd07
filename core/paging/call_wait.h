// CallWait: how long a call of the program waits for a page that it did not find in memory. It is
// counted where faults' waits are (metrics call_waits and call_wait_ns). Any thread; not within
// faults, which count theirs. The clock is read for what is missing alone: nothing where all is
// there.
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

  // The page is missing. Once or more often.
  void begin();

  // Of a thread that waits for another one, which counts it: see outcore::UncountedWaits.
  static void leave_out_this_thread(bool is_left_out);

 private:
  void end();

  metrics::CounterBlock& counters_;
  uint64_t start_ns_ = 0;
  bool is_begun_ = false;
};

}  // namespace outcore::paging
