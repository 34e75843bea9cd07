#include "core/os/parents_descriptors.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "core/base/assert.h"
#include "core/os/process_lock.h"

namespace outcore::os {
namespace {

struct All {
  ProcessLock lock;
  std::vector<int> descriptors;
};

All& all() {
  static All* const made = new All;  // never destroyed: runtimes may be static
  return *made;
}

}  // namespace

void ParentsDescriptors::add(int fd) {
  OC_CHECK(fd >= 0);
  const SignalBlock block;
  const Locked locked(all().lock);
  all().descriptors.push_back(fd);
}

// A child has closed it already, and the number may be another's by now: only what is listed is
// closed.
void ParentsDescriptors::close(int fd) {
  const SignalBlock block;
  const Locked locked(all().lock);
  const auto found = std::find(all().descriptors.begin(), all().descriptors.end(), fd);
  if (found == all().descriptors.end()) return;
  all().descriptors.erase(found);
  ::close(fd);
}

void ParentsDescriptors::prepare() { static_cast<void>(all()); }

void ParentsDescriptors::close_in_child() {
  for (const int fd : all().descriptors) ::close(fd);
  all().descriptors.clear();
}

}  // namespace outcore::os
