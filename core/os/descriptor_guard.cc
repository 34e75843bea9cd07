#include "core/os/descriptor_guard.h"

#include <cerrno>
#include <system_error>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/own_table.h"
#include "core/os/wait.h"

namespace outcore::os {
namespace {

constexpr uint32_t kStarting = 0, kThere = 1, kFailed = 2, kEnding = 3;

}  // namespace

Result<std::unique_ptr<DescriptorGuard>> DescriptorGuard::start(int fd) {
  OC_CHECK(fd >= 0);
  std::unique_ptr<DescriptorGuard> guard(new DescriptorGuard);
  try {
    const SignalBlock block;  // inherited: no signal of the program runs on our thread
    guard->thread_ = std::thread([g = guard.get(), fd] { g->run(fd); });
  } catch (const std::system_error& e) {
    return base::system_error(e.code().value(), "start the thread that guards a userfaultfd",
                              "raise ulimit -u");
  }
  while (guard->state_.load() == kStarting) wait(&guard->state_, kStarting, 1'000'000'000);
  if (guard->state_.load() == kThere) return guard;
  return Error{EPERM, "guard a userfaultfd: the kernel refuses a thread a table of its own"};
}

void DescriptorGuard::run(int fd) {
  const OwnTable own;
  state_.store(own.is_own() && own.fetch(fd) >= 0 ? kThere : kFailed);
  wake_all(&state_);
  while (state_.load() == kThere) wait(&state_, kThere, 1'000'000'000);
}

DescriptorGuard::~DescriptorGuard() {
  if (!thread_.joinable()) return;
  state_.store(kEnding);
  wake_all(&state_);
  thread_.join();
}

}  // namespace outcore::os
