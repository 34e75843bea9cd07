#include "far/redis/crowd.h"

#include "core/os/wait.h"
#include "far/redis/chunks.h"

namespace outcore::redis {

class Crowd::Held {
 public:
  explicit Held(Crowd& crowd) : crowd_(crowd) {
    while (!crowd_.holder_.try_take()) os::yield();  // held for a few instructions
    if (crowd_.process_ == generation()) return;
    // Whoever waited in the parent does not exist here.
    crowd_.process_ = generation();
    crowd_.first_ = crowd_.last_ = nullptr;
    crowd_.count_.store(0);
  }
  ~Held() { crowd_.holder_.give(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  const os::SignalBlock block_;
  Crowd& crowd_;
};

void Crowd::join(Rider* rider) {
  const Held held(*this);
  rider->next = nullptr;
  (first_ == nullptr ? first_ : last_->next) = rider;
  last_ = rider;
  count_.fetch_add(1);
}

bool Crowd::leave(Rider* rider) {
  const Held held(*this);
  Rider* before = nullptr;
  for (Rider* r = first_; r != nullptr; before = r, r = r->next) {
    if (r != rider) continue;
    (before == nullptr ? first_ : before->next) = r->next;
    if (last_ == r) last_ = before;
    count_.fetch_sub(1);
    return true;
  }
  return false;
}

Rider* Crowd::take(size_t requests_max) {
  if (is_empty()) return nullptr;
  const Held held(*this);
  Rider* const rider = first_;
  if (rider == nullptr || rider->batch.size() > requests_max) return nullptr;
  first_ = rider->next;
  if (first_ == nullptr) last_ = nullptr;
  count_.fetch_sub(1);
  return rider;
}

}  // namespace outcore::redis
