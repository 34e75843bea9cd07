// Memory limit: how much memory this process could still take, by the machine and by its cgroups.
// Any thread; not on the fault path.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace outcore::os {

struct MemoryAvailable {
  uint64_t bytes = 0;
  std::string
      source;  // what bounds it, to follow "available": "on this machine", "in cgroup /user.slice"
};

// The least of what the machine has available (MemAvailable) and what each cgroup from the
// process's own up to the root leaves: its limit minus its use, where page cache does not count as
// used, for the kernel drops it on demand. cgroup v2 (memory.max and memory.high), v1 and the two
// side by side. Swap is not memory here.
//
// RLIMIT_AS and RLIMIT_DATA do not count: they bound address space. A region needs as much of that
// as its data are large, whatever the budget; where they are too low, map() fails and says so.
//
// `root` is where proc and sys are found: "/", or a made-up tree in tests.
MemoryAvailable memory_available(const std::string& root = "/");

// Half of it, in whole MiB and at least 16 MiB, and the reason in words.
std::pair<uint64_t, std::string> default_budget_of(const MemoryAvailable& available);

}  // namespace outcore::os
