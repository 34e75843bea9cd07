#include "paging/gate.h"

#include <map>
#include <mutex>

namespace outcore::paging {

std::shared_ptr<Crowd> Crowd::of_writers(uint64_t device) {
  static std::mutex lock;
  static std::map<uint64_t, std::weak_ptr<Crowd>> crowds;
  const std::lock_guard<std::mutex> guard(lock);
  std::weak_ptr<Crowd>& known = crowds[device];
  std::shared_ptr<Crowd> crowd = known.lock();
  if (crowd == nullptr) known = crowd = std::make_shared<Crowd>();
  return crowd;
}

}  // namespace outcore::paging
