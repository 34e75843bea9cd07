#include "core/os/parents_descriptors.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "core/base/assert.h"
#include "core/os/process_lock.h"

namespace outcore::os {
namespace {

struct Listed {
  ProcessLock lock;
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

}  // namespace

void ParentsDescriptors::add(int fd) {
  OC_CHECK(fd >= 0);
  const SignalBlock block;
  const Locked locked(listed().lock);
  listed().descriptors.push_back(fd);
}

// A child has closed it already, and the number may be another's by now: only what is listed is
// closed.
void ParentsDescriptors::close(int fd) {
  const SignalBlock block;
  const Locked locked(listed().lock);
  if (unlist(fd)) ::close(fd);
}

void ParentsDescriptors::forget(int fd) {
  const SignalBlock block;
  const Locked locked(listed().lock);
  static_cast<void>(unlist(fd));
}

void ParentsDescriptors::prepare() { static_cast<void>(listed()); }

void ParentsDescriptors::close_in_child() {
  for (const int fd : listed().descriptors) ::close(fd);
  listed().descriptors.clear();
}

}  // namespace outcore::os
