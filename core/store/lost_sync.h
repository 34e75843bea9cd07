// LostSync: remembers an fsync error after which bytes may be lost. Any thread.
//
// The kernel reports such an error once, and marks the bytes that it could not write as clean: a
// later fsync succeeds, although those bytes are lost (fsyncgate, PostgreSQL 2018). So the error
// stays.
#pragma once

#include <atomic>
#include <cerrno>

#include "core/base/assert.h"

namespace outcore::store {

class LostSync {
 public:
  int error() const { return error_.load(); }  // 0: none; otherwise -errno
  // `result` is what fsync returned: 0 or -errno. Returns it, or the earlier error.
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
