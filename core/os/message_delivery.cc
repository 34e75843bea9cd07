#include "core/os/message_delivery.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/descriptor_place.h"
#include "core/os/parents_descriptors.h"
#include "core/os/uapi.h"
#include "core/os/unseen_by_tsan.h"
#include "core/os/wait.h"

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
  for (const int queue : queues_) ParentsDescriptors::close(queue);
  ::close(stop_event_);
}

// Each event thread has an epoll descriptor of its own: then the kernel wakes one waiting thread
// for a fault. With poll() it would wake all of them for a single message.
int MessageDelivery::make_queue() {
  const int queue = above_standard(::epoll_create1(EPOLL_CLOEXEC));
  if (queue < 0) return -errno;
  ParentsDescriptors::add(queue);
  queues_.push_back(queue);
  epoll_event faults{}, stop{};
  faults.events = EPOLLIN | EPOLLEXCLUSIVE;
  faults.data.fd = source_.fd;
  stop.events = EPOLLIN;
  stop.data.fd = stop_event_;
  if (::epoll_ctl(queue, EPOLL_CTL_ADD, source_.fd, &faults) != 0 ||
      ::epoll_ctl(queue, EPOLL_CTL_ADD, stop_event_, &stop) != 0)
    return -errno;
  return queue;
}

Status MessageDelivery::start(unsigned threads, unsigned messages_max) {
  OC_CHECK(stop_event_ < 0);
  OC_CHECK(source_.fd >= 0);
  OC_CHECK(threads != 0);
  OC_CHECK(messages_max != 0 && messages_max <= kMessagesMax);
  messages_max_ = messages_max;
  stop_event_ = above_standard(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (stop_event_ < 0) return base::system_error(errno, "make an event for event threads");
  // Inherited by the new threads, so that no signal of the program runs on them.
  const SignalBlock block;
  try {
    for (unsigned i = 0; i < threads; ++i) {
      const int queue = make_queue();
      if (queue < 0) return base::system_error(queue, "make a queue for an event thread");
      threads_.push_back(unseen_thread([this, queue] { run(queue); }));
    }
  } catch (const std::system_error& e) {
    return base::system_error(e.code().value(), "start an event thread",
                              "ask for fewer event_threads");
  }
  return {};
}

void MessageDelivery::run(int queue) {
  uffd_msg message[kMessagesMax];
  for (;;) {
    const uint64_t heard_ns = now_ns();
    const ssize_t n = ::read(source_.fd, message, messages_max_ * sizeof message[0]);
    if (n <= 0) {
      if (is_worth_spinning()) continue;
      epoll_event events[2];
      const int count = ::epoll_wait(queue, events, 2, -1);
      if (count < 0) pause_where_refused(errno);
      rest_if_told();
      for (int i = 0; i < count; ++i)
        if (events[i].data.fd == stop_event_) return;
      continue;
    }
    last_ns_.store(now_ns(), std::memory_order_relaxed);
    Touch touch[kMessagesMax];
    uint32_t count = 0;
    OC_CHECK(static_cast<size_t>(n) % sizeof message[0] == 0);
    OC_CHECK(static_cast<size_t>(n) <= sizeof message);
    for (size_t i = 0; i < static_cast<size_t>(n) / sizeof message[0]; ++i) {
      if (message[i].event != UFFD_EVENT_PAGEFAULT) continue;
      const auto& fault = message[i].arg.pagefault;
      touch[count++] = {reinterpret_cast<std::byte*>(fault.address),
                        (fault.flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP)) != 0,
                        fault.feat.ptid, heard_ns};
    }
    if (count > 1) on_many_({touch, count});
    for (uint32_t i = 0; i < count; ++i) answer(touch[i]);
  }
}

// Waking a sleeping thread on an idle core costs more than a fill, so event threads stay awake for
// a moment after a fault, unless other threads want the core: then yielding takes long.
bool MessageDelivery::is_worth_spinning() const {
  constexpr uint64_t kSpinNs = 50'000, kCrowdedNs = 30'000;
  const uint64_t now = now_ns();
  if (now > last_ns_.load(std::memory_order_relaxed) + kSpinNs) return false;
  yield();
  return now_ns() < now + kCrowdedNs;
}

// Whatever the outcome, the thread touches the page again, and finds it filled or poisoned.
void MessageDelivery::answer(const Touch& touch) {
  static_cast<void>(on_fault_(touch));
  const uint64_t page =
      base::round_down(reinterpret_cast<uint64_t>(touch.address), base::kSystemPage);
  wake_range(source_, reinterpret_cast<std::byte*>(page), base::kSystemPage);
}

}  // namespace outcore::os
