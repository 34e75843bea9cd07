#include "far/redis/space_pool.h"

#include <sys/mman.h>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/base/units.h"
#include "core/os/wait.h"

namespace outcore::redis {

SpacePool::SpacePool(size_t count, size_t bytes_each)
    : count_(count), stride_(base::round_up(bytes_each, kAlignment)), holders_(new Holder[count]) {
  OC_CHECK(count_ != 0 && stride_ != 0);
  void* const memory = ::mmap(nullptr, count_ * stride_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) first_ = static_cast<std::byte*>(memory);
}

SpacePool::~SpacePool() {
  if (first_ != nullptr) ::munmap(first_, count_ * stride_);
}

std::byte* SpacePool::acquire(uint64_t deadline_ns) {
  OC_CHECK(is_made());
  for (;;) {
    const uint32_t given = given_.load(std::memory_order_acquire);
    for (size_t i = 0; i < count_; ++i)
      if (holders_[i].try_lock()) return first_ + i * stride_;
    if (base::now_ns() >= deadline_ns) return nullptr;
    os::wait(&given_, given, 20'000'000);
  }
}

void SpacePool::release(const std::byte* piece) {
  OC_CHECK(piece >= first_ && piece < first_ + count_ * stride_);
  OC_ASSERT(static_cast<size_t>(piece - first_) % stride_ == 0);
  holders_[static_cast<size_t>(piece - first_) / stride_].unlock();
  given_.fetch_add(1, std::memory_order_release);
  os::wake(&given_, 1);
}

}  // namespace outcore::redis
