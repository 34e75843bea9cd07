#include "far/redis/combining_queue.h"

#include "core/base/assert.h"
#include "core/os/wait.h"
#include "far/redis/chunk_request.h"

namespace outcore::redis {

class CombiningQueue::Held {
 public:
  explicit Held(CombiningQueue& queue) : queue_(queue) {
    while (!queue_.holder_.try_lock()) os::yield();  // held for a few instructions
    if (queue_.process_ == generation()) return;
    // This is a forked child: the threads that waited in the parent do not exist here.
    queue_.process_ = generation();
    queue_.first_ = queue_.last_ = nullptr;
    queue_.count_.store(0);
  }
  ~Held() { queue_.holder_.unlock(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  const os::SignalBlock block_;
  CombiningQueue& queue_;
};

void CombiningQueue::join(QueuedBatch* waiting) {
  const Held held(*this);
  OC_CHECK(waiting->line == nullptr && !waiting->batch.empty());
  OC_ASSERT((first_ == nullptr) == (last_ == nullptr));
  waiting->next = nullptr;
  (first_ == nullptr ? first_ : last_->next) = waiting;
  last_ = waiting;
  count_.fetch_add(1);
}

bool CombiningQueue::leave(QueuedBatch* waiting) {
  const Held held(*this);
  QueuedBatch* before = nullptr;
  for (QueuedBatch* r = first_; r != nullptr; before = r, r = r->next) {
    if (r != waiting) continue;
    (before == nullptr ? first_ : before->next) = r->next;
    if (last_ == r) last_ = before;
    OC_CHECK(count_.load(std::memory_order_relaxed) != 0);
    count_.fetch_sub(1);
    return true;
  }
  return false;
}

QueuedBatch* CombiningQueue::dequeue(size_t requests_max) {
  if (is_empty()) return nullptr;
  const Held held(*this);
  QueuedBatch* const waiting = first_;
  if (waiting == nullptr || waiting->batch.size() > requests_max) return nullptr;
  OC_CHECK(waiting->line == nullptr && count_.load(std::memory_order_relaxed) != 0);
  first_ = waiting->next;
  if (first_ == nullptr) last_ = nullptr;
  count_.fetch_sub(1);
  return waiting;
}

}  // namespace outcore::redis
