#include "umap/session/claims.h"

#include <algorithm>
#include <utility>

#include "core/base/assert.h"

namespace outcore::umapped {

Claims::Claim::Claim(Claim&& other) noexcept
    : of_(std::exchange(other.of_, nullptr)), range_(other.range_) {}

Claims::Claim& Claims::Claim::operator=(Claim&& other) noexcept {
  if (this == &other) return *this;
  end();
  of_ = std::exchange(other.of_, nullptr);
  range_ = other.range_;
  return *this;
}

void Claims::Claim::end() {
  if (of_ == nullptr) return;
  const std::lock_guard<std::mutex> guard(of_->lock_);
  of_->ranges_.erase(range_);
  of_ = nullptr;
}

Claims::Claim Claims::take(const void* space, uint64_t from, uint64_t to) {
  OC_CHECK(from < to);
  const std::lock_guard<std::mutex> guard(lock_);
  const bool is_taken = std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& r) {
    return r.space == space && r.from < to && from < r.to;
  });
  return is_taken ? Claim() : add({space, from, to});
}

Claims::Claim Claims::take_given(const void* space, uint64_t from, uint64_t to) {
  OC_CHECK(from < to);
  const std::lock_guard<std::mutex> guard(lock_);
  return add({space, from, to});
}

// REQUIRES: the lock.
Claims::Claim Claims::add(const Range& range) {
  return {this, ranges_.insert(ranges_.end(), range)};
}

}  // namespace outcore::umapped
