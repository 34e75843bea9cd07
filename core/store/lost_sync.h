// LostSync: the error of an fsync after which bytes may be lost.
//
// The kernel tells such an error once, and marks as clean what it could not write: a later fsync
// succeeds, and says nothing about those bytes (fsyncgate, PostgreSQL 2018). So it stays.
#pragma once

#include <atomic>
#include <cerrno>

#include "core/base/assert.h"

namespace outcore::store {

class LostSync {
 public:
  int error() const { return error_.load(); }  // 0: none; or -errno
  // What fsync said: 0 or -errno. Gives it, or the error that there was before.
  int note(int result) {
    OC_ASSERT(result <= 0);
    int none = 0;
    if (result == -EIO || result == -ENOSPC || result == -EDQUOT)
      error_.compare_exchange_strong(none, result);
    const int lost = error();
    return lost != 0 ? lost : result;
  }

 private:
  std::atomic<int> error_{0};
};

}  // namespace outcore::store
