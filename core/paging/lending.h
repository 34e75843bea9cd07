// Lending: the pager's budget as a room for stores, for as long as there is a pager.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <shared_mutex>

#include "core/store/room.h"

namespace outcore::paging {

class BudgetControl;

class Lending final : public store::Room {
 public:
  explicit Lending(BudgetControl& control) : control_(&control) {}

  int acquire(uint64_t bytes) override;
  void release(uint64_t bytes) override;
  uint64_t free_bytes() const override;
  uint64_t bytes_max() const override;
  void end();  // stores may live longer than the pager; what they have is then nobody's budget

 private:
  // A forked child has the parent's numbers, and locks that nobody unlocks.
  bool is_here() const { return ::getpid() == process_; }

  const pid_t process_ = ::getpid();
  mutable std::shared_mutex lock_;  // alone: the pager ends
  BudgetControl* control_;
};

}  // namespace outcore::paging
