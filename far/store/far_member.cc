#include "far/store/far_member.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/clock.h"

namespace outcore::store {
namespace {

constexpr uint64_t kSilentNs = 60'000'000'000;
// It grows by at least an eighth of its size, within these bounds, while there is space, so that
// not much more is booked than is needed.
constexpr uint64_t kStepBytesMin = 1 << 20, kStepBytesMax = 16 << 20;

}  // namespace

Result<std::unique_ptr<FarMember>> FarMember::open(const RedisOptions& options,
                                                   const StoreLimits& limits) {
  RedisOptions own = options;
  redis::Claim claim;
  claim.set_owner();
  own.name = "space of " + claim.owner + ", " + claim.new_id;
  OpenOptions how;
  how.is_writable = how.may_create = true;
  auto store = RedisStore::open(own, how, limits);
  if (!store) return store.error();
  std::unique_ptr<FarMember> member(new FarMember);
  member->store_ = std::static_pointer_cast<RedisStore>(store.value());
  member->store_->remove_at_end();
  return member;
}

Result<uint64_t> FarMember::free_bytes() {
  const Result<uint64_t> most = store_->size_bytes_max();
  if (!most || most.value() == UINT64_MAX) return most;
  const uint64_t end = std::max(most.value() / chunk_bytes(), end_);
  return (free_.size() + (end - used_)) * chunk_bytes();
}

int FarMember::allocate(uint64_t count, std::vector<uint64_t>* chunks) {
  OC_CHECK(used_ <= end_);
  int error = 0;
  if (const uint64_t spare = free_.size() + (end_ - used_); spare < count) {
    const uint64_t now_ns = base::now_ns();
    error = now_ns < silent_until_ns_ ? -ETIMEDOUT : grow(count - spare);
    if (error != 0 && now_ns >= silent_until_ns_) silent_until_ns_ = base::now_ns() + kSilentNs;
  }
  for (; count > 0 && !free_.empty(); --count) {
    chunks->push_back(free_.back());
    free_.pop_back();
  }
  for (; count > 0 && used_ < end_; --count) chunks->push_back(used_++);
  return error;
}

// Grows by so many chunks, or by as many as there is space for.
int FarMember::grow(uint64_t count) {
  OC_ASSERT(count != 0);
  const uint64_t ahead =
      std::clamp(end_ * chunk_bytes() / 8, kStepBytesMin, kStepBytesMax) / chunk_bytes();
  const uint64_t step = std::max(count, ahead);
  int error = store_->resize((end_ + step) * chunk_bytes());
  if (error == 0) {
    end_ += step;
    return 0;
  }
  if (error != -ENOSPC) return error;
  const Result<uint64_t> most = store_->size_bytes_max();
  if (!most) return -most.code();
  const uint64_t end = std::min(most.value() / chunk_bytes(), end_ + count);
  if (end <= end_) return 0;
  error = store_->resize(end * chunk_bytes());
  if (error == 0) end_ = end;
  return error == -ENOSPC ? 0 : error;  // another process took the space first
}

}  // namespace outcore::store
