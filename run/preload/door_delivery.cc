// How faults on the program's mappings are delivered. See door.h, window.h.
#include <utility>

#include "core/base/assert.h"
#include "run/preload/bounce.h"
#include "run/preload/door.h"
#include "run/preload/others.h"
#include "run/preload/settings.h"
#include "run/preload/window.h"
#include "run/preload/words.h"

namespace outcore::preload {

// The delivery for a new mapping. kAuto: that of the runtime, or of the file's other mappings.
Delivery Door::delivery_for(TakenFile& file, const NewMapping& made) {
  OC_CHECK(runtime_ != nullptr && made.address != nullptr);
  const bool has_messages = runtime_->kernel.has_messages;
  const Delivery otherwise = has_messages ? Delivery::kMessages : Delivery::kAuto;
  if (runtime_->options.delivery != Delivery::kAuto) return Delivery::kAuto;
  if (!Window::is_ready()) {
    tell_delivery(Window::instance().why_not());
    return otherwise;
  }
  const bool is_there = Window::covers(made.address, made.size_bytes);
  // Outside of the window, in-thread, a system call on an absent page would fail. With messages it
  // does not; where they cannot be had, the mapping stays the kernel's.
  if (file.cache() != nullptr)
    return file.cache()->delivery == Delivery::kInThread && !is_there ? otherwise : Delivery::kAuto;
  std::string why;
  if (!runtime_->kernel.has_sigbus)
    why = runtime_->kernel.why_no_userfaultfd;
  else if (!Window::instance().has_handlers())
    why = "the program has replaced the handler of SIGSYS or SIGBUS";
  else if (is_closed_to_in_thread_ || (!file.is_writable && has_ring()))
    why = "the program has set up io_uring or aio";
  else if (!is_there)
    why = "the program chose the addresses";
  if (is_there || !why.empty()) tell_delivery(why);
  return why.empty() ? Delivery::kInThread : otherwise;
}

// For --explain: how the first mapping is delivered, and why not in-thread.
void Door::tell_delivery(const std::string& why) {
  if (!settings().is_explaining || std::exchange(has_told_delivery_, true)) return;
  if (Window::is_ready() && why.empty())
    say("faults in-thread: system calls that point into the window are made whole");
  else
    say("faults by messages, where they can be had" + (why.empty() ? "" : ": " + why));
}

// Of a mapping that is taken.
void Door::note_delivery(Delivery delivery) {
  delivery_ = delivery == Delivery::kMessages   ? "messages"
              : delivery == Delivery::kInThread ? "in-thread"
                                                : "mprotect";
  if (delivery != Delivery::kMessages) set_needs_bounce();
}

// Hands back the files of this process for which `is_meant` is true. REQUIRES: `lock_` is locked.
template <typename IsMeant>
void Door::leave_locked(const char* why, const IsMeant& is_meant) {
  for (const auto& [identity, file] : files_)
    if (!file->mappings.empty() && !is_inherited(*file) && is_meant(*file))
      static_cast<void>(hand_back_locked(*file, why));
}

void Door::leave_all(const char* why) {
  if (is_of_another_process()) return;
  const Inside inside;
  const os::Locked locked(lock_);
  why_closed_ = why;
  revive_what_is_read();
  leave_locked(why, [](TakenFile&) { return true; });
}

void Door::leave_in_thread(const char* why) {
  if (!Window::is_ready() || is_of_another_process()) return;
  const Inside inside;
  const os::Locked locked(lock_);
  is_closed_to_in_thread_ = true;
  revive_what_is_read();
  leave_locked(why, [](TakenFile& file) {
    OC_CHECK(file.cache() != nullptr);
    return file.cache()->delivery == Delivery::kInThread;
  });
}

}  // namespace outcore::preload
