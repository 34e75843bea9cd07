#include "core/paging/call_wait.h"

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::paging {
namespace {

// Initial-exec, because other models may allocate at a thread's first access.
[[gnu::tls_model("initial-exec")]] thread_local uint32_t uncounted_depth = 0;  // how often

}  // namespace

void CallWait::begin() {
  if (is_begun_ || uncounted_depth != 0) return;
  is_begun_ = true;
  start_ns_ = os::now_ns();
}

void CallWait::end() {
  const uint64_t now_ns = os::now_ns();
  OC_ASSERT(now_ns >= start_ns_);
  const uint64_t waited_ns = now_ns - start_ns_;
  for (uint64_t left = pages_, left_ns = waited_ns; left > 0; --left) {
    const uint64_t share_ns = left_ns / left;
    counters_.call_waited(share_ns);
    left_ns -= share_ns;
  }
}

void CallWait::leave_out_this_thread(bool is_left_out) {
  OC_CHECK(is_left_out || uncounted_depth != 0);
  is_left_out ? ++uncounted_depth : --uncounted_depth;
}

}  // namespace outcore::paging
