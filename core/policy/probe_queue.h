// ProbeQueue: pages that are to be probed, in the order in which they were asked for. The holder of
// the shard's turn; allocates only in allocate().
#pragma once

#include <cstdint>
#include <utility>

#include "core/base/assert.h"
#include "core/os/address_space.h"
#include "outcore/policy.h"

namespace outcore::policy {

struct ProbeRequest {
  PageKey key = 0;
  FrameId frame = kNoFrame;  // that held the page when it was touched last
};

class ProbeQueue {
 public:
  static constexpr uint64_t kMax = 4096;

  // REQUIRES: called once, first. Errors: ENOMEM.
  Status allocate() { return requests_.allocate(kMax); }

  // If it is full, the oldest is forgotten, and the next touch of its page is not seen.
  void push(const ProbeRequest& request) {
    OC_CHECK(requests_.count() == kMax);
    if (end_ - begin_ == kMax) {
      ++begin_;
      has_overflown_ = true;
    }
    requests_[end_++ % kMax] = request;
    OC_ASSERT(end_ - begin_ <= kMax);
  }
  // REQUIRES: !is_empty().
  ProbeRequest pop() {
    OC_CHECK(begin_ < end_);
    return requests_[begin_++ % kMax];
  }
  void clear() { begin_ = end_; }
  // Whether a request was forgotten since this was asked last.
  bool test_and_clear_overflow() { return std::exchange(has_overflown_, false); }
  bool is_empty() const { return begin_ == end_; }
  uint64_t metadata_bytes() const { return requests_.touched(); }

 private:
  os::Table<ProbeRequest> requests_;
  uint64_t begin_ = 0, end_ = 0;
  bool has_overflown_ = false;
};

}  // namespace outcore::policy
