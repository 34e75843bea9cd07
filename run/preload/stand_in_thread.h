// StandInThread: does something for a caller who must not touch its own stack meanwhile.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>
#include <system_error>
#include <thread>

#include "core/os/unseen_by_tsan.h"
#include "core/os/wait.h"

namespace outcore::preload {

// What `work`, which is copied, returns; ENOMEM: there is no memory for a thread, or for the work.
// The caller sleeps until then: `work` may refer to nothing on its stack. It begins when the thread
// is made: meanwhile the C library has all signals blocked, and a touch of an absent page of the
// stack could not be answered.
template <typename Work>
int on_stand_in_thread(const Work& work) {
  struct Shared {
    std::atomic<uint32_t> is_made{0};
    std::atomic<int> result{ENOMEM};
  };
  const auto shared = std::make_shared<Shared>();
  const os::SignalBlock block;
  try {
    std::thread thread = os::unseen_thread([work, shared] {
      while (shared->is_made.load() == 0) os::wait(&shared->is_made, 0, 10'000'000);
      try {
        shared->result = work();
      } catch (const std::bad_alloc&) {
      }
    });
    shared->is_made = 1;
    os::wake_all(&shared->is_made);
    thread.join();
  } catch (const std::system_error&) {
  }
  return shared->result;
}

}  // namespace outcore::preload
