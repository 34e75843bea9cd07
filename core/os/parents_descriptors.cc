#include "core/os/parents_descriptors.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/base/assert.h"
#include "core/os/at_fork.h"
#include "core/os/wait.h"

namespace outcore::os {
namespace {

struct Listed {
  Lock lock;
  std::vector<int> descriptors;
};

Listed& listed() {
  static Listed* const made = new Listed;  // never destroyed: runtimes may be static
  return *made;
}

// False: it is not listed. REQUIRES: the lock.
bool unlist(int fd) {
  OC_ASSERT(listed().lock.is_held());
  std::vector<int>& all = listed().descriptors;
  const auto found = std::find(all.begin(), all.end(), fd);
  if (found == all.end()) return false;
  all.erase(found);
  return true;
}

void close_in_child() {
  OC_ASSERT(listed().lock.is_held());
  for (const int fd : listed().descriptors) ::close(fd);
  listed().descriptors.clear();
  listed().lock.unlock();
}

// Registered at load: a fork() that has begun when the first descriptor is opened closes it, too.
[[maybe_unused]] const bool is_closing_registered = [] {
  at_fork(
      ForkOrder::kDescriptors,
      [] {
        const int error = errno;  // the runtime's handler has set it, and looks at it afterwards
        listed().lock.lock();
        errno = error;
      },
      [] { listed().lock.unlock(); }, close_in_child);
  return true;
}();

}  // namespace

int ParentsDescriptors::open(const std::function<int()>& make) {
  const SignalBlock block;
  const Locked locked(listed().lock);
  std::vector<int>& all = listed().descriptors;
  all.push_back(-1);  // before it is open: there may be no memory for it
  const int fd = make();
  if (fd >= 0)
    all.back() = fd;
  else
    all.pop_back();
  if (fd >= 0 && wait_hooks != nullptr) wait_hooks->note_descriptor(fd, true);
  return fd;
}

void ParentsDescriptors::add(int fd) {
  OC_CHECK(fd >= 0);
  const SignalBlock block;
  const Locked locked(listed().lock);
  listed().descriptors.push_back(fd);
}

void ParentsDescriptors::close(int fd) {
  const SignalBlock block;
  const Locked locked(listed().lock);
  if (!unlist(fd)) return;
  if (wait_hooks != nullptr) wait_hooks->note_descriptor(fd, false);
  ::close(fd);
}

void ParentsDescriptors::forget(int fd) {
  const SignalBlock block;
  const Locked locked(listed().lock);
  static_cast<void>(unlist(fd));
}

}  // namespace outcore::os
