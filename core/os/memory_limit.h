// Memory limit: how much more memory this process can use, given the machine and its cgroups. Any
// thread; not on the fault path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace outcore::os {

struct MemoryAvailable {
  uint64_t bytes = 0;
  // What limits it, to be written after "available": "on this machine", "in cgroup /user.slice".
  std::string source;
};

// The smallest of what the machine has available (MemAvailable) and what each cgroup, from the
// process's own up to the root, leaves: its limit minus its use. Page cache does not count as used,
// because the kernel drops it on demand. Supports cgroup v2 (memory.max and memory.high), v1, and
// both side by side. Swap does not count as memory.
//
// RLIMIT_AS and RLIMIT_DATA are ignored: they limit address space. A region needs as many addresses
// as its data has bytes, whatever the budget; if the limits are too low, map() fails and says so.
//
// `root` contains proc and sys: "/", or a made-up tree in tests.
MemoryAvailable memory_available(const std::string& root = "/");

// Half of it, in whole MiB and at least 16 MiB, and the reason in words.
std::pair<uint64_t, std::string> default_budget_of(const MemoryAvailable& available);

// The number that a file of the kernel's contains; nullopt if there is no file, or no number in it
// ("max").
std::optional<uint64_t> number_in(const std::string& path);

}  // namespace outcore::os
