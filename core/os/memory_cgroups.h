// MemoryCgroups: the cgroups that bound or report the memory of this process. Any thread; not on
// the fault path.
#pragma once

#include <string>
#include <vector>

namespace outcore::os {

struct MemoryCgroup {
  std::string folder;  // "/sys/fs/cgroup/user.slice"
  std::string name;    // for people: "/user.slice"
  bool is_v2 = false;
};

// The process's own cgroup and all above it that can be seen, from below, in each hierarchy that
// has memory's files: v2, v1, or both side by side (then of v2 some may have pressure alone). Where
// v1's parents do not account for their children, they are left out. At most kMemoryCgroupsMax.
//
// `root` contains proc and sys: "" for the machine's, or a made-up tree in tests.
inline constexpr size_t kMemoryCgroupsMax = 64;
std::vector<MemoryCgroup> memory_cgroups(const std::string& root);

}  // namespace outcore::os
