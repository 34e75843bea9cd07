#include "core/os/program_action.h"

#include <ucontext.h>

#include "core/base/assert.h"

namespace outcore::os {

struct sigaction ProgramAction::get() const {
  const uint32_t latest = latest_.load(std::memory_order_acquire);
  OC_ASSERT(latest < kActions);
  return action_[latest];
}

void ProgramAction::set(const struct sigaction& action) {
  const uint32_t next = (latest_.load(std::memory_order_relaxed) + 1) % kActions;
  action_[next] = action;
  latest_.store(next, std::memory_order_release);
}

bool ProgramAction::is_handler(const struct sigaction& action) {
  if ((action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction != nullptr;
  return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

bool ProgramAction::call(int signal, siginfo_t* info, void* context) {
  OC_CHECK(context != nullptr);
  const struct sigaction action = get();
  if (!is_handler(action)) return false;
  if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
    struct sigaction fresh {};
    fresh.sa_handler = SIG_DFL;
    set(fresh);
  }
  sigset_t mask = static_cast<ucontext_t*>(context)->uc_sigmask;
  sigorset(&mask, &mask, &action.sa_mask);
  for (const int fault : {SIGBUS, SIGSEGV, SIGSYS}) sigdelset(&mask, fault);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  if ((action.sa_flags & SA_SIGINFO) != 0)
    action.sa_sigaction(signal, info, context);
  else
    action.sa_handler(signal);
  return true;
}

}  // namespace outcore::os
