#include "run/preload/listener.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/assert.h"
#include "core/buffer/opener.h"
#include "core/os/wait.h"
#include "run/preload/inside.h"
#include "run/preload/real.h"

namespace outcore::preload {
namespace {

// The kernel sends this signal to our thread alone, which blocks it and waits for it.
int lease_signal() { return SIGRTMAX - 2; }

// The path of a descriptor in the table of the process, not in this thread's.
class PathOf {
 public:
  explicit PathOf(int fd) { std::snprintf(text_, sizeof text_, "/proc/%d/fd/%d", ::getpid(), fd); }
  const char* get() const { return text_; }

 private:
  char text_[48];
};

}  // namespace

// Every call here is the real one: OwnDescriptors knows the process's table, not this thread's.
int Listener::start_of_breaks() {
  std::atomic<uint32_t> thread_id{0};
  try {
    // The new thread shares this thread's table, and blocks all signals, as this thread does.
    std::thread([this, &thread_id] {  // banned-ok: it lives as long as the process
      become_ours("outcore-lease");
      thread_id.store(static_cast<uint32_t>(::gettid()));
      os::wake_all(&thread_id);
      sigset_t breaks;
      sigemptyset(&breaks);
      sigaddset(&breaks, lease_signal());
      // It also looks from time to time, as a signal is lost if the queue of signals is full. An
      // opener waits for 45 s (lease-break-time).
      const timespec pause{10, 0};
      for (const uint64_t one = 1;;) {
        if (::sigtimedwait(&breaks, nullptr, &pause) < 0) os::pause_where_refused(errno);
        os::rest_if_told();
        const ssize_t ignored = real().write(event_, &one, sizeof one);
        static_cast<void>(ignored);
      }
    })
        .detach();  // banned-ok: it lives as long as the process
  } catch (const std::system_error& e) {
    return -e.code().value();
  }
  while (thread_id.load() == 0) os::wait(&thread_id, 0, 100'000'000);
  told_of_breaks_ = static_cast<int>(thread_id.load());
  return 0;
}

void Listener::close_all_but(int a, int b) {
  OC_CHECK(a >= 0 && b >= 0 && a != b);
  const auto low = static_cast<unsigned>(std::min(a, b)),
             high = static_cast<unsigned>(std::max(a, b));
  if (low > 0) real().close_range(0, low - 1, 0);
  if (high > low + 1) real().close_range(low + 1, high - 1, 0);
  real().close_range(high + 1, ~0u, 0);
}

// REQUIRES: there is room for it, so that this takes no memory.
void Listener::add(Entry entry) {
  OC_ASSERT(entries_.size() < entries_.capacity());
  entry.number = ++entries_made_;
  entries_.push_back(std::move(entry));
}

int Listener::lease(const Identity& identity, int fd) {
  OC_ASSERT(fd >= 0);
  entries_.reserve(entries_.size() + 1);
  if (told_of_breaks_ == 0)
    if (const int error = start_of_breaks(); error != 0) return error;
  const int own = real().open(PathOf(fd).get(), O_RDONLY | O_CLOEXEC);
  if (own < 0) return -errno;
  const f_owner_ex thread{F_OWNER_TID, told_of_breaks_};
  // The owner is set before the lease: otherwise a break would signal the process, and end it.
  if (real().fcntl(own, F_SETSIG, lease_signal()) != 0 ||
      real().fcntl(own, F_SETOWN_EX, &thread) != 0 || real().fcntl(own, F_SETLEASE, F_RDLCK) != 0) {
    const int error = errno;
    real().close(own);
    return -error;
  }
  Entry entry{identity};
  entry.fd = own;
  entry.is_lease = true;
  add(std::move(entry));
  return 0;
}

namespace {

// FAN_PRE_ACCESS of Linux 6.14; the headers of Debian 12 are older.
constexpr uint64_t kPreAccess = 0x00100000;

// Returns a group with a mark on the file, or -errno.
int group_on(const char* path, unsigned kind, uint64_t events) {
  const int group = ::fanotify_init(kind | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC);
  if (group < 0) return -errno;
  if (::fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_INODE, events, AT_FDCWD, path) == 0)
    return group;
  const int error = errno;
  real().close(group);
  return -error;
}

}  // namespace

// This process; or one that looks what it has opened as soon as it has.
bool Listener::may_open(const Entry& entry, int process) {
  return process == ::getpid() ||
         (entry.members != nullptr && buffer::Opener::is_opening(*entry.members, process));
}

int Listener::mark_opens(const Identity& identity, int fd, const buffer::Board* members) {
  OC_ASSERT(fd >= 0);
  entries_.reserve(entries_.size() + 1);  // so that no mark is lost for lack of memory
  const PathOf path(fd);
  Entry entry{identity};
  // Each file has one group, and one more reports the changes of all: a user may have 128 groups.
  // Without that one, the group of the file reports its changes.
  const uint64_t changes = changes_.watch(path.get()) == 0 ? 0 : FAN_MODIFY;
  entry.members = members;
  if (members == nullptr)
    entry.fd = group_on(path.get(), FAN_CLASS_PRE_CONTENT, changes | FAN_OPEN_PERM | kPreAccess);
  entry.asks_access = entry.fd >= 0;
  if (entry.fd < 0) entry.fd = group_on(path.get(), FAN_CLASS_CONTENT, changes | FAN_OPEN_PERM);
  entry.has_permission = entry.fd >= 0;
  if (entry.fd < 0)
    entry.fd = group_on(path.get(), FAN_CLASS_NOTIF | FAN_REPORT_FID, FAN_MODIFY | FAN_OPEN);
  if (!entry.has_permission) changes_.end(path.get());
  if (entry.fd < 0) return entry.fd;
  add(std::move(entry));
  return entry.has_permission ? 0 : 1;
}

int Listener::mark_changes(const Identity& identity, int fd) {
  OC_ASSERT(fd >= 0);
  entries_.reserve(entries_.size() + 1);  // so that no mark is lost for lack of memory
  Entry entry{identity};
  entry.fd = group_on(PathOf(fd).get(), FAN_CLASS_NOTIF | FAN_REPORT_FID, FAN_MODIFY);
  if (entry.fd < 0) return entry.fd;
  add(std::move(entry));
  return 0;
}

void Listener::ask_access(const Identity& identity, int fd, bool is_asking) {
  for (Entry& e : entries_) {
    if (!(e.identity == identity) || !e.asks_access) continue;
    if (is_asking && e.quiet_count == 0) continue;  // it was marked after the asking stopped
    e.quiet_count += is_asking ? -1 : 1;
    OC_ASSERT(e.quiet_count >= 0);
    if (e.quiet_count != (is_asking ? 0 : 1)) continue;
    const unsigned how = (is_asking ? FAN_MARK_ADD : FAN_MARK_REMOVE) | FAN_MARK_INODE;
    static_cast<void>(::fanotify_mark(e.fd, how, kPreAccess, AT_FDCWD, PathOf(fd).get()));
  }
}

// Whoever waits for an answer goes on when the group is closed. Needs no memory.
void Listener::end(const Identity& identity, int fd) {
  bool is_in_changes = false;
  std::erase_if(entries_, [&](const Entry& e) {
    if (!(e.identity == identity)) return false;
    for (const int asking : e.waiting) allow(e, asking);
    if (e.is_lease) real().fcntl(e.fd, F_SETLEASE, F_UNLCK);
    real().close(e.fd);
    is_in_changes = is_in_changes || e.has_permission;
    return true;
  });
  if (!is_in_changes || fd < 0) return;
  const PathOf path(fd);
  // If the program has closed our descriptor by a call that we do not see, the number may be that
  // of another file. No server is asked (AT_STATX_DONT_SYNC), because it may not answer.
  struct statx about;
  if (::statx(AT_FDCWD, path.get(), AT_STATX_DONT_SYNC, STATX_INO, &about) == 0 &&
      identity == Identity{::makedev(about.stx_dev_major, about.stx_dev_minor), about.stx_ino})
    changes_.end(path.get());
}

bool Listener::wait() {
  pollfd event{event_, POLLIN, 0};
  try {
    std::vector<pollfd> all{event};
    for (const Entry& e : entries_)
      if (!e.is_lease) all.push_back({e.fd, POLLIN, 0});
    const ChangeGroup::Wait changes = changes_.to_wait_for();
    if (changes.fd >= 0) all.push_back({changes.fd, POLLIN, 0});
    const int count = ::poll(all.data(), all.size(), changes.milliseconds);
    if (count < 0) os::pause_where_refused(errno);
    os::rest_if_told();
    return count > 0 && (all[0].revents & POLLIN) != 0;
  } catch (const std::bad_alloc&) {  // then the thread looks every 10 ms
    return ::poll(&event, 1, 10) > 0;
  }
}

void Listener::allow(const Entry& entry, int fd) {
  OC_ASSERT(entry.fd >= 0 && fd >= 0);
  const fanotify_response response{fd, FAN_ALLOW};
  while (real().write(entry.fd, &response, sizeof response) < 0 && errno == EINTR) {
  }
  real().close(fd);
}

// If there is no memory to note the opener, it goes on at once: it must not wait for ever.
void Listener::let_wait(Entry& entry, int fd) {
  try {
    entry.waiting.push_back(fd);
  } catch (const std::bad_alloc&) {
    allow(entry, fd);
  }
}

// True if some of the events are of other processes.
bool Listener::read_events(Entry& entry) {
  alignas(fanotify_event_metadata) char buffer[4096];
  bool has_others = false;
  for (;;) {
    ssize_t n = real().read(entry.fd, buffer, sizeof buffer);
    if (n <= 0) return has_others;
    for (auto* e = reinterpret_cast<fanotify_event_metadata*>(buffer); FAN_EVENT_OK(e, n);
         e = FAN_EVENT_NEXT(e, n)) {
      // What is only reported is heard when the call is over.
      const bool is_call = (e->mask & (FAN_OPEN_PERM | kPreAccess)) != 0;
      const bool is_own =
          may_open(entry, e->pid) ||
          (!is_call && entry.members != nullptr && buffer::Opener::is_one(*entry.members, e->pid));
      has_others = has_others || !is_own;
      if (e->fd < 0) continue;
      if ((e->mask & (FAN_OPEN_PERM | kPreAccess)) == 0)
        real().close(e->fd);
      else if (is_own)
        allow(entry, e->fd);
      else
        let_wait(entry, e->fd);
    }
  }
}

// Reads a limited number of events at a time, because others wait for this thread.
void Listener::read_changes() {
  constexpr int kEventsMax = 256;
  bool is_any_of_use = false, is_any = false;
  for (int events = 0; events < kEventsMax; ++events) {
    Identity changed;
    int process = 0;
    const ChangeGroup::Heard heard = changes_.next(&changed, &process);
    if (heard == ChangeGroup::Heard::kNothing) break;
    is_any = true;
    if (heard == ChangeGroup::Heard::kOwn) continue;
    for (Entry& e : entries_) {
      if (!e.has_permission || (heard == ChangeGroup::Heard::kFile && !(e.identity == changed)))
        continue;
      if (heard == ChangeGroup::Heard::kFile && e.members != nullptr &&
          buffer::Opener::is_one(*e.members, process))
        continue;
      e.is_changed = is_any_of_use = true;
    }
  }
  // They are changes by this process, or of a file that could not be removed from the group.
  if (is_any && !is_any_of_use) changes_.rest();
}

std::vector<Listener::Heard> Listener::drain_events() {
  std::vector<Heard> heard;
  heard.reserve(entries_.size());  // so that nothing that is read is lost for lack of memory
  read_changes();
  for (Entry& e : entries_) {
    bool is_changed = std::exchange(e.is_changed, false);
    is_changed =
        (e.is_lease ? real().fcntl(e.fd, F_GETLEASE) != F_RDLCK : read_events(e)) || is_changed;
    if (!is_changed || e.is_reported) continue;
    e.is_reported = true;
    heard.push_back({e.identity, e.number});
  }
  OC_ASSERT(heard.size() <= entries_.size());
  return heard;
}

// If the file was handed back, its entry has ended: a later one of the same file knows nothing of
// it. If it could not be, openers wait no longer.
void Listener::settle(uint64_t number) {
  for (Entry& e : entries_) {
    if (e.number != number) continue;
    OC_ASSERT(e.is_reported);
    for (const int fd : std::exchange(e.waiting, {})) allow(e, fd);
    e.is_reported = e.is_lease;
  }
}

}  // namespace outcore::preload
