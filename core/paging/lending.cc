#include "core/paging/lending.h"

#include "core/base/units.h"
#include "core/paging/engine.h"

namespace outcore::paging {

int Lending::take(uint64_t bytes) {
  if (!is_here()) return -ENOSPC;
  const std::shared_lock<std::shared_mutex> guard(lock_);
  return engine_ == nullptr ? -ENOSPC : engine_->lend(bytes);
}

void Lending::give(uint64_t bytes) {
  if (!is_here()) return;
  const std::shared_lock<std::shared_mutex> guard(lock_);
  if (engine_ != nullptr) engine_->take_back(bytes);
}

uint64_t Lending::free_bytes() const {
  if (!is_here()) return 0;
  const std::shared_lock<std::shared_mutex> guard(lock_);
  return engine_ == nullptr ? 0 : engine_->lendable_bytes();
}

uint64_t Lending::bytes_max() const {
  if (!is_here()) return 0;
  const std::shared_lock<std::shared_mutex> guard(lock_);
  return engine_ == nullptr ? 0 : uint64_t{engine_->pager().frames.count()} * base::kSystemPage;
}

void Lending::end() {
  if (!is_here()) return;
  const std::unique_lock<std::shared_mutex> guard(lock_);
  engine_ = nullptr;
}

}  // namespace outcore::paging
