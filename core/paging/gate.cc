#include "core/paging/gate.h"

#include <unistd.h>

#include <map>
#include <mutex>

namespace outcore::paging {
namespace {

// Of one process. In a forked child others' transfers would be inside for ever, and the lock
// perhaps held. Never freed: spaces may end after statics.
struct Crowds {
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<Crowd>> of_device;

  static Crowds& instance() {
    static std::atomic<Crowds*> current{nullptr};
    Crowds* crowds = current.load(std::memory_order_acquire);
    while (crowds == nullptr || crowds->process != ::getpid()) {
      auto fresh = std::make_unique<Crowds>();
      if (current.compare_exchange_strong(crowds, fresh.get(), std::memory_order_acq_rel))
        crowds = fresh.release();
    }
    return *crowds;
  }
};

}  // namespace

std::shared_ptr<Crowd> Crowd::of_writers(uint64_t device) {
  Crowds& crowds = Crowds::instance();
  const std::lock_guard<std::mutex> guard(crowds.mutex);
  std::weak_ptr<Crowd>& known = crowds.of_device[device];
  std::shared_ptr<Crowd> crowd = known.lock();
  if (crowd == nullptr) known = crowd = std::make_shared<Crowd>();
  return crowd;
}

}  // namespace outcore::paging
