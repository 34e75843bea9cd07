// Memory limit: how much more memory this process can use, given the machine and its cgroups. Any
// thread; not on the fault path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/os/kernel_text.h"
#include "core/os/memory_cgroups.h"

namespace outcore::os {

struct MemoryAvailable {
  uint64_t bytes = 0;
  // What limits it, to be written after "available": "on this machine", "in cgroup /user.slice".
  std::string source;
  // The most that it could ever be: the machine's memory, or the smallest limit of a cgroup. 0: not
  // known.
  uint64_t limit_bytes = 0;
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

// MemoryMeter: the same again and again, of the cgroups that the process was in when the meter was
// made. Limits that change are noticed, and that the process is in another cgroup. What it reads it
// keeps open: see kernel_text.h.
class MemoryMeter {
 public:
  struct Reading {
    uint64_t bytes = 0, limit_bytes = 0;  // as in MemoryAvailable; limit_bytes 0: not known
    // Of the cgroup that leaves the least, as long as the meter lives; nullptr: the machine does.
    const std::string* source = nullptr;
  };

  explicit MemoryMeter(const std::string& root = "/");
  // Once, with few descriptors open at a time.
  static MemoryAvailable read_once(const std::string& root);
  // An errno if something that is there could not be opened (EMFILE): then what it bounds is not
  // known. Otherwise 0.
  int error() const { return error_; }
  // Not known either: when something that was open says nothing any more, or the process has moved.
  Reading read() const;  // allocates nothing

 private:
  struct Group {
    bool is_v2 = false;
    std::string source;
    KernelText max, high, current, stat;  // by their names in v2; v1 has no high
  };
  static Group open(const MemoryCgroup& cgroup, int* error);
  static Reading read_machine(const KernelText& meminfo, std::span<char> buffer);
  // As far as it says something; false if that is not all.
  static bool bound_by(const Group& group, std::span<char> buffer, Reading* reading);

  int error_ = 0;   // set by what opens those below
  KernelText own_;  // where the process is, and what that said at the start
  std::string own_at_start_;
  KernelText meminfo_;
  std::vector<Group> groups_;
};

// Half of it, in whole MiB, and the reason in words. At least 16 MiB; or half of the limit, if that
// is less, but not below 4 MiB.
std::pair<uint64_t, std::string> default_budget_of(const MemoryAvailable& available);

// The number that a file of the kernel's contains; nullopt if there is no file, or no number in it
// ("max").
std::optional<uint64_t> number_in(const std::string& path);

}  // namespace outcore::os
