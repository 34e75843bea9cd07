#include "os/message_delivery.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/units.h"
#include "os/uapi.h"
#include "os/wait.h"

namespace outcore::os {

MessageDelivery::MessageDelivery(const FaultSource& source, FaultFunction on_fault,
                                 ManyFunction on_many)
    : source_(source), on_fault_(on_fault), on_many_(on_many) {}

MessageDelivery::~MessageDelivery() {
  if (stop_event_ < 0) return;
  const uint64_t one = 1;
  while (::write(stop_event_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  for (std::thread& thread : threads_) thread.join();
  ::close(stop_event_);
}

Status MessageDelivery::start(unsigned threads) {
  stop_event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop_event_ < 0) return base::system_error(errno, "make an event for event threads");
  const SignalBlock block;  // inherited: no signal of the program runs on our threads
  try {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  } catch (const std::system_error& e) {
    return base::system_error(e.code().value(), "start an event thread",
                              "ask for fewer event_threads");
  }
  return {};
}

void MessageDelivery::run() {
  pollfd poll_for[2] = {{source_.fd, POLLIN, 0}, {stop_event_, POLLIN, 0}};
  uffd_msg message[kMessagesMax];
  for (;;) {
    const ssize_t n = ::read(source_.fd, message, sizeof message);
    if (n <= 0) {
      if (is_worth_spinning()) continue;
      poll_for[1].revents = 0;
      ::poll(poll_for, 2, -1);
      if ((poll_for[1].revents & POLLIN) != 0) return;
      continue;
    }
    last_ns_.store(now_ns(), std::memory_order_relaxed);
    Touch touch[kMessagesMax];
    uint32_t count = 0;
    for (size_t i = 0; i < static_cast<size_t>(n) / sizeof message[0]; ++i) {
      if (message[i].event != UFFD_EVENT_PAGEFAULT) continue;
      const auto& fault = message[i].arg.pagefault;
      touch[count++] = {reinterpret_cast<std::byte*>(fault.address),
                        (fault.flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP)) != 0};
    }
    if (count > 1) on_many_({touch, count});
    for (uint32_t i = 0; i < count; ++i) answer(touch[i]);
  }
}

// To wake a sleeping thread on an idle core costs more than a fill. So event threads stay awake for
// a moment after a fault, unless others want the core: then yielding takes long.
bool MessageDelivery::is_worth_spinning() const {
  constexpr uint64_t kSpinNs = 50'000, kCrowdedNs = 30'000;
  const uint64_t now = now_ns();
  if (now > last_ns_.load(std::memory_order_relaxed) + kSpinNs) return false;
  yield();
  return now_ns() < now + kCrowdedNs;
}

// Wherever the fault led, the touch is tried again: it finds its page, or poison.
void MessageDelivery::answer(const Touch& touch) {
  static_cast<void>(on_fault_(touch.address, touch.is_write));
  const uint64_t page =
      base::round_down(reinterpret_cast<uint64_t>(touch.address), base::kSystemPage);
  wake_range(source_, reinterpret_cast<std::byte*>(page), base::kSystemPage);
}

}  // namespace outcore::os
