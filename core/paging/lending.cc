#include "core/paging/lending.h"

#include "core/paging/budget_control.h"

namespace outcore::paging {

int Lending::acquire(uint64_t bytes) {
  if (!is_here()) return -ENOSPC;
  const std::shared_lock<std::shared_mutex> guard(lock_);
  return control_ == nullptr ? -ENOSPC : control_->lend(bytes);
}

void Lending::release(uint64_t bytes) {
  if (!is_here()) return;
  const std::shared_lock<std::shared_mutex> guard(lock_);
  if (control_ != nullptr) control_->return_lent(bytes);
}

uint64_t Lending::free_bytes() const {
  if (!is_here()) return 0;
  const std::shared_lock<std::shared_mutex> guard(lock_);
  return control_ == nullptr ? 0 : control_->lendable_bytes();
}

uint64_t Lending::bytes_max() const {
  if (!is_here()) return 0;
  const std::shared_lock<std::shared_mutex> guard(lock_);
  return control_ == nullptr ? 0 : control_->bytes_max();
}

void Lending::end() {
  if (!is_here()) return;
  const std::unique_lock<std::shared_mutex> guard(lock_);
  control_ = nullptr;
}

}  // namespace outcore::paging
