#include "core/paging/gate.h"

#include <unistd.h>

#include <map>
#include <mutex>

namespace outcore::paging {
namespace {

// Of one process. In a forked child others' transfers would be inside for ever, and the lock
// perhaps held. Never freed: caches may end after statics.
struct TransferCounts {
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<TransferCount>> of_device;

  static TransferCounts& instance() {
    static std::atomic<TransferCounts*> current{nullptr};
    TransferCounts* counts = current.load(std::memory_order_acquire);
    while (counts == nullptr || counts->process != ::getpid()) {
      auto fresh = std::make_unique<TransferCounts>();
      if (current.compare_exchange_strong(counts, fresh.get(), std::memory_order_acq_rel))
        counts = fresh.release();
    }
    return *counts;
  }
};

}  // namespace

std::shared_ptr<TransferCount> TransferCount::of_writers(uint64_t device) {
  TransferCounts& counts = TransferCounts::instance();
  const std::lock_guard<std::mutex> guard(counts.mutex);
  std::weak_ptr<TransferCount>& known = counts.of_device[device];
  std::shared_ptr<TransferCount> transfers = known.lock();
  if (transfers == nullptr) known = transfers = std::make_shared<TransferCount>();
  return transfers;
}

}  // namespace outcore::paging
