// RobustMutex: a lock in memory that processes share, which tells if its owner has died.
#pragma once

#include <pthread.h>

#include <cerrno>

#include "bench/check.h"

namespace outcore::bench {

// Any thread of any process. A std::unique_lock cannot say that it failed: hence lock() itself.
class RobustMutex {
 public:
  RobustMutex() {
    pthread_mutexattr_t kind;
    BENCH_CHECK(pthread_mutexattr_init(&kind) == 0);
    BENCH_CHECK(pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED) == 0);
    BENCH_CHECK(pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST) == 0);
    BENCH_CHECK(pthread_mutex_init(&mutex_, &kind) == 0);
    pthread_mutexattr_destroy(&kind);
  }
  RobustMutex(const RobustMutex&) = delete;
  RobustMutex& operator=(const RobustMutex&) = delete;

  // False from then on when a process has died with the lock: what it guards may be half changed.
  bool lock() {
    const int code = pthread_mutex_lock(&mutex_);
    // Unlocked without being made consistent: then it fails for all others, too.
    if (code == EOWNERDEAD) pthread_mutex_unlock(&mutex_);
    BENCH_CHECK(code == 0 || code == EOWNERDEAD || code == ENOTRECOVERABLE);
    return code == 0;
  }
  void unlock() { BENCH_CHECK(pthread_mutex_unlock(&mutex_) == 0); }

 private:
  pthread_mutex_t mutex_;
};

}  // namespace outcore::bench
