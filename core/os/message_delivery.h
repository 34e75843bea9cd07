// Message delivery: event threads that read faults from a userfaultfd and answer them.
//
// A faulting thread sleeps in the kernel until its range is woken, so a system call may touch an
// absent page. If a page cannot be filled, the engine poisons it before the thread is woken. The
// object owns its threads and its epoll descriptors, but not the FaultSource.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "core/os/fault_ranges.h"
#include "core/os/signal_delivery.h"
#include "outcore/result.h"

namespace outcore::os {

// Called with faults that arrived together, before each is answered. Event threads only.
using ManyFunction = void (*)(std::span<const Touch> touches);

class MessageDelivery {
 public:
  // Answers the faults of `source` from start() until the destructor. `source` must outlive it.
  MessageDelivery(const FaultSource& source, FaultFunction on_fault, ManyFunction on_many);
  MessageDelivery(const MessageDelivery&) = delete;
  MessageDelivery& operator=(const MessageDelivery&) = delete;
  ~MessageDelivery();
  // A thread takes as many messages at a time as wait, `messages_max` at most: the rest is left to
  // the other threads. REQUIRES: both are 1 or more, and the latter kMessagesMax or less.
  Status start(unsigned threads, unsigned messages_max);

  static constexpr unsigned kMessagesMax = 64;

 private:
  int make_queue();  // a descriptor, or -errno
  void run(int queue);
  bool is_worth_spinning() const;
  void answer(const Touch& touch);

  const FaultSource& source_;
  const FaultFunction on_fault_;
  const ManyFunction on_many_;
  std::atomic<uint64_t> last_ns_{0};  // time of the last fault
  unsigned messages_max_ = 1;
  int stop_event_ = -1;
  std::vector<int> queues_;
  std::vector<std::thread> threads_;
};

}  // namespace outcore::os
