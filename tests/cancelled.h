// A thread that is asked to end before it calls: which calls it returns from.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <string>

namespace outcore::scene {

struct Cancelled {
  const std::function<void()>* call;
  bool has_returned = false;

  static void* run(void* argument) {
    auto& self = *static_cast<Cancelled*>(argument);
    ::pthread_cancel(::pthread_self());
    (*self.call)();
    self.has_returned = true;
    ::pthread_testcancel();
    return nullptr;
  }
};

// Sanitizers take the unwinding of pthread_cancel over: true skips a test.
inline bool takes_cancellation_over() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

// The request is pending while `call` runs: its first cancellation point would end the thread.
inline void expect_not_cancelled_within(const std::string& what,
                                        const std::function<void()>& call) {
  Cancelled cancelled{&call};
  pthread_t thread;
  ASSERT_EQ(::pthread_create(&thread, nullptr, Cancelled::run, &cancelled), 0);
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_TRUE(cancelled.has_returned) << "a thread was ended within: " << what;
  EXPECT_EQ(result, PTHREAD_CANCELED) << "the request was lost within: " << what;
}

}  // namespace outcore::scene
