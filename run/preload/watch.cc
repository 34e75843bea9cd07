#include "run/preload/watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "run/preload/door.h"
#include "run/preload/inside.h"
#include "run/preload/listener.h"
#include "run/preload/real.h"
#include "run/preload/release_link.h"
#include "run/preload/requests.h"
#include "run/preload/words.h"

namespace outcore::preload {

// What a thread asks of the listener, and waits for.
struct Command {
  enum class Kind : uint8_t { kWatch, kEnd, kQuiet, kAsk } kind = Kind::kEnd;
  Watch::For what = Watch::For::kOpens;
  Identity identity;
  int fd = -1;  // of the process
  const buffer::Board* board = nullptr;
  int result = 0;
  std::atomic<uint32_t> is_done{0};
  Command* next = nullptr;  // the one that was asked before
};

constexpr uint64_t kIdleLookNs = 1'000'000'000;

struct Watch::Impl {
  int to_listener = -1, to_answerer = -1;  // eventfds, open in both tables of descriptors
  int requests = -1;
  int link = -1;  // by which descendants ask
  os::Lock lock;
  Command* commands = nullptr;          // on the stacks of those who wait: asking needs no memory
  std::vector<Listener::Heard> opened;  // by others; must be handed back
  std::vector<uint64_t> settled;        // the numbers of those handed back, or that could not be

  void listen();
  void answer();
  static void look_at_idle(uint64_t* looked_ns);
  void hand_back_opened();
  bool note_opened(Listener& listener);
  void ask(Command* command);  // returns when it is carried out
  int carry_out(const Command& command, Listener& listener);
  static void ring(int event) {
    OC_ASSERT(event >= 0);
    const uint64_t one = 1;
    while (real().write(event, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }
  static void hush(int event) {
    uint64_t count = 0;
    const ssize_t ignored = real().read(event, &count, sizeof count);
    static_cast<void>(ignored);
  }
  // Returns them in the order in which they were asked.
  Command* take_commands() {
    const os::Locked locked(lock);
    Command* in_order = nullptr;
    for (Command* c = std::exchange(commands, nullptr); c != nullptr;) {
      Command* const earlier = c->next;
      c->next = std::exchange(in_order, c);
      c = earlier;
    }
    return in_order;
  }
  template <typename T>
  std::vector<T> take_all(std::vector<T>& from) {
    const os::Locked locked(lock);
    return std::exchange(from, {});
  }
};

Watch& Watch::instance() {
  static Watch* const watch = new Watch;
  return *watch;
}

void Watch::forget_in_child() {
  impl_ = nullptr;
  is_half_started_ = false;
}

// Whoever asks finds that nobody answers any more.
void Watch::hang_up() {
  if (impl_ == nullptr) return;
  for (const int socket : {impl_->requests, impl_->link})
    if (socket >= 0) ::shutdown(socket, SHUT_RDWR);
}

// What start() has made is undone, so that another try does not make it twice. No thread runs.
Status Watch::give_up(Impl* impl, const Status& why) {
  OC_ASSERT(!why.ok());
  stop_listening_for_requests();
  for (const int fd : {impl->to_listener, impl->to_answerer})
    if (fd >= 0) ::close(fd);
  delete impl;
  return why;
}

Status Watch::start() {
  if (impl_ != nullptr) return {};
  if (is_half_started_) return Error{ENOTSUP, "the watching threads could not be started before"};
  auto* impl = new Impl;
  impl->to_listener = ::eventfd(0, EFD_CLOEXEC);
  impl->to_answerer = ::eventfd(0, EFD_CLOEXEC);
  const int error = errno;
  impl->requests = listen_for_requests();
  if (impl->requests < 0)
    say(std::string("`outcore residency` will not find this program, as it cannot listen: ") +
        ::strerrordesc_np(-impl->requests));
  if (impl->to_listener < 0 || impl->to_answerer < 0)
    return give_up(impl, base::system_error(error, "make an event for the watching threads"));
  impl->link = ReleaseLink::start();
  if (impl->link < 0)
    return give_up(
        impl, base::system_error(-impl->link, "make the sockets by which child processes ask"));
  std::atomic<uint32_t> begun{0};
  try {
    // They live as long as the process, and end with it. banned-ok: nobody could join them
    std::thread([impl, &begun] {
      become_ours("outcore-watch");
      // The thread gets a copy of the table, and closes all but our two events in it.
      const bool is_apart = ::unshare(CLONE_FILES) == 0;
      if (is_apart) Listener::close_all_but(impl->to_listener, impl->to_answerer);
      begun.store(is_apart ? 1 : 2);
      os::wake_all(&begun);
      if (is_apart) impl->listen();
    }).detach();  // banned-ok: it lives as long as the process
    while (begun.load() == 0) os::wait(&begun, 0, 100'000'000);
    if (begun.load() == 2)
      return give_up(impl, Error{EPERM, "a table of descriptors of its own is refused"});
    std::thread([impl] {
      become_ours("outcore-answer");
      impl->answer();
    }).detach();  // banned-ok: it lives as long as the process
  } catch (const std::system_error& e) {
    const Status why = base::system_error(e.code().value(), "start the watching threads");
    if (begun.load() == 0) return give_up(impl, why);
    is_half_started_ = true;  // the listening thread has it, and listens for nobody
    return why;
  }
  impl_ = impl;
  return {};
}

int Watch::watch(TakenFile& file, For what) {
  if (Status s = start(); !s) return -s.code();
  Command command{Command::Kind::kWatch, what, file.identity, file.fd, file.board};
  impl_->ask(&command);
  file.is_watched = command.result >= 0;
  return command.result;
}

void Watch::end(TakenFile& file) {
  if (!file.is_watched || impl_ == nullptr) return;
  file.is_watched = false;
  Command command{Command::Kind::kEnd, For::kOpens, file.identity, file.fd, nullptr};
  impl_->ask(&command);
}

Watch::Quiet::Quiet(const TakenFile* file)
    : file_(file != nullptr && file->is_watched ? file : nullptr) {
  if (file_ != nullptr) Watch::instance().ask_access(*file_, false);
}
Watch::Quiet::~Quiet() {
  const int saved_errno = errno;
  if (file_ != nullptr) Watch::instance().ask_access(*file_, true);
  errno = saved_errno;
}

void Watch::ask_access(const TakenFile& file, bool is_asking) {
  if (impl_ == nullptr) return;
  Command command{is_asking ? Command::Kind::kAsk : Command::Kind::kQuiet, For::kOpens,
                  file.identity, file.fd, nullptr};
  impl_->ask(&command);
}

void Watch::Impl::ask(Command* command) {
  OC_CHECK(command->is_done.load() == 0 && command->next == nullptr);
  {
    const os::SignalBlock block;
    const os::Locked locked(lock);
    command->next = std::exchange(commands, command);
  }
  ring(to_listener);
  while (command->is_done.load(std::memory_order_acquire) == 0)
    os::wait(&command->is_done, 0, 100'000'000);
}

int Watch::Impl::carry_out(const Command& command, Listener& listener) {
  if (command.kind == Command::Kind::kEnd) {
    listener.end(command.identity, command.fd);
    return 0;
  }
  if (command.kind != Command::Kind::kWatch) {
    listener.ask_access(command.identity, command.fd, command.kind == Command::Kind::kAsk);
    return 0;
  }
  switch (command.what) {
    case For::kWrites:
      return listener.lease(command.identity, command.fd);
    case For::kOpens:
      return listener.mark_opens(command.identity, command.fd, nullptr);
    case For::kStrangersOpens:
      return listener.mark_opens(command.identity, command.fd, command.board);
    case For::kChanges:
      return listener.mark_changes(command.identity, command.fd);
  }
  return -EINVAL;
}

void Watch::Impl::listen() {
  Listener listener(to_listener);
  for (;;) {
    const bool is_called = listener.wait();
    if (is_called) hush(to_listener);
    for (Command *command = take_commands(), *next = nullptr; command != nullptr; command = next) {
      next = command->next;  // the command may be gone as soon as it is done
      try {
        command->result = carry_out(*command, listener);
      } catch (const std::bad_alloc&) {
        command->result = -ENOMEM;
      }
      command->is_done.store(1, std::memory_order_release);
      os::wake_all(&command->is_done);
    }
    for (const uint64_t number : take_all(settled)) listener.settle(number);
    if (note_opened(listener)) ring(to_answerer);
  }
}

// Notes the files that others have opened, to be handed back. True if there are any.
bool Watch::Impl::note_opened(Listener& listener) {
  try {
    {
      const os::Locked locked(lock);
      opened.reserve(opened.size() + listener.files_max());
    }
    const std::vector<Listener::Heard> heard = listener.drain_events();
    OC_ASSERT(heard.size() <= listener.files_max());
    const os::Locked locked(lock);
    opened.insert(opened.end(), heard.begin(), heard.end());
    return !heard.empty();
  } catch (const std::bad_alloc&) {
    return false;  // the listener reports it in the next round
  }
}

// If memory is short, the rest is tried again, because whoever opened the files waits for them.
void Watch::Impl::hand_back_opened() {
  for (;;) {
    Listener::Heard heard;
    {
      const os::Locked locked(lock);
      if (opened.empty()) return;
      heard = opened.back();
    }
    try {
      Door::instance().hand_back(heard.identity, "another process opens it or writes to it");
      const os::Locked locked(lock);
      settled.push_back(heard.number);
      const auto is_it = [&](const Listener::Heard& h) { return h.number == heard.number; };
      const auto found = std::find_if(opened.begin(), opened.end(), is_it);
      OC_CHECK(found != opened.end());
      opened.erase(found);
    } catch (const std::bad_alloc&) {
      ::poll(nullptr, 0, 10);
    }
  }
}

void Watch::look_at_idle() {
  OC_ASSERT(impl_ != nullptr);
  Impl::ring(impl_->to_answerer);
}

// Where memory is short, in a second again.
void Watch::Impl::look_at_idle(uint64_t* looked_ns) {
  if (os::now_ns() - *looked_ns < kIdleLookNs) return;
  *looked_ns = os::now_ns();
  try {
    Door::instance().look_at_idle();
  } catch (const std::bad_alloc&) {
  }
}

void Watch::Impl::answer() {
  uint64_t looked_ns = 0;
  for (;;) {
    pollfd wait[3] = {{to_answerer, POLLIN, 0}, {requests, POLLIN, 0}, {link, POLLIN, 0}};
    const bool has_idle = Door::instance().has_idle();
    if (::poll(wait, 3, has_idle ? static_cast<int>(kIdleLookNs / 1'000'000) : -1) < 0) {
      os::pause_where_refused(errno);
      continue;
    }
    os::rest_if_told();
    if (has_idle) look_at_idle(&looked_ns);
    if ((wait[0].revents & POLLIN) != 0) {
      hush(to_answerer);
      hand_back_opened();
      ring(to_listener);
    }
    if ((wait[1].revents & POLLIN) != 0) answer_request(requests);
    if ((wait[2].revents & POLLIN) != 0)
      ReleaseLink::answer(
          link, [](const ReleaseLink::Question& q) { return Door::instance().release(q); });
  }
}

}  // namespace outcore::preload
