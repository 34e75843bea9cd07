// Periodic checkpoints. See outcore/periodic_checkpoints.h.
#include <unistd.h>

#include <cerrno>
#include <new>

#include "checkpoints/capture/parts.h"
#include "checkpoints/capture/periodic_thread.h"
#include "core/os/cancel_block.h"
#include "outcore/periodic_checkpoints.h"

namespace outcore {

struct PeriodicCheckpoints::Impl {
  const pid_t process = ::getpid();
  std::shared_ptr<checkpoints::CheckpointTarget> target;  // open as long as this object
  std::unique_ptr<checkpoints::PeriodicThread> thread;
};

PeriodicCheckpoints::PeriodicCheckpoints(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PeriodicCheckpoints::PeriodicCheckpoints(PeriodicCheckpoints&&) noexcept = default;
PeriodicCheckpoints& PeriodicCheckpoints::operator=(PeriodicCheckpoints&& other) noexcept {
  static_cast<void>(end());
  impl_ = std::move(other.impl_);
  return *this;
}
PeriodicCheckpoints::~PeriodicCheckpoints() { static_cast<void>(end()); }

Result<PeriodicCheckpoints> PeriodicCheckpoints::start(std::vector<CheckpointPart> parts,
                                                       const PeriodicOptions& options) try {
  const os::CancelBlock uncancelled;
  const std::string attempted = "make checkpoints periodically";
  const CheckpointOptions& each = options.checkpoint;
  if (static_cast<bool>(each.quiesce) != static_cast<bool>(each.resume))
    return Error{EINVAL, attempted + ": give both quiesce and resume, or neither"};
  auto found = checkpoints::look_up(attempted, parts, each);
  if (!found) return found.error();
  if (!found->heaps.empty() && !each.quiesce)
    return Error{EINVAL, attempted +
                             ": a heap is a part: give a quiesce function, which keeps threads "
                             "from allocating in it"};
  checkpoints::PeriodicThread::Plan plan;
  plan.every_ms = options.every_ms;
  plan.keep = options.keep;
  plan.name = options.name;
  plan.make = [parts = std::move(parts), each, target = found->target](
                  const std::string& name, std::shared_ptr<checkpoints::CheckpointTarget>* used) {
    *used = target;
    return checkpoint(name, parts, each);
  };
  if (options.told)
    plan.told = [told = options.told](const auto& made, const Status&) { told(made); };
  auto impl = std::make_unique<Impl>();
  impl->target = found->target;
  auto thread = checkpoints::PeriodicThread::start(attempted, std::move(plan));
  if (!thread) return thread.error();
  impl->thread = std::move(thread).value();
  return PeriodicCheckpoints(std::move(impl));
} catch (const std::bad_alloc&) {
  return Error{ENOMEM, "make checkpoints periodically: no memory"};
}

Status PeriodicCheckpoints::end() {
  const os::CancelBlock uncancelled;
  if (impl_ == nullptr) return {};
  if (impl_->process != ::getpid()) {  // a forked child has neither thread nor target
    static_cast<void>(impl_.release());
    return {};
  }
  impl_->thread->end();
  impl_->target.reset();
  return impl_->thread->last();
}

uint64_t PeriodicCheckpoints::made() const { return impl_ == nullptr ? 0 : impl_->thread->made(); }

}  // namespace outcore
