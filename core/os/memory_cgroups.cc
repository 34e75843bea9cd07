#include "core/os/memory_cgroups.h"

#include <fstream>
#include <optional>
#include <sstream>

#include "core/base/assert.h"
#include "core/os/memory_limit.h"

namespace outcore::os {
namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool is_listed(const std::string& list, const std::string& item) {
  return ("," + list + ",").find("," + item + ",") != std::string::npos;
}

// mountinfo escapes blanks and backslashes in octal: "\040".
std::string unescape(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// Hierarchy: a mounted tree of cgroups, and the place of this process in it.
struct Hierarchy {
  bool is_v2 = false;
  std::string mount_point;  // as the process sees it
  std::string mount_root;   // the cgroup that is mounted there
  std::string path;         // the process's own cgroup
};

// "36 31 0:33 ROOT MOUNT_POINT OPTIONS [OPTIONAL …] - TYPE SOURCE SUPER_OPTIONS"
std::optional<Hierarchy> memory_hierarchy_in(const std::string& mount) {
  std::istringstream words(mount);
  std::string skipped, type, options;
  Hierarchy found;
  words >> skipped >> skipped >> skipped >> found.mount_root >> found.mount_point;
  while (words >> skipped && skipped != "-") continue;
  if (!(words >> type >> skipped >> options)) return std::nullopt;
  found.is_v2 = type == "cgroup2";
  if (!found.is_v2 && !(type == "cgroup" && is_listed(options, "memory"))) return std::nullopt;
  found.mount_root = unescape(found.mount_root);
  found.mount_point = unescape(found.mount_point);
  return found;
}

std::vector<Hierarchy> hierarchies(const std::string& root) {
  std::vector<Hierarchy> all;
  const auto own = lines_of(root + "/proc/self/cgroup");  // "4:memory:/path", "0::/path"
  for (const std::string& mount : lines_of(root + "/proc/self/mountinfo")) {
    std::optional<Hierarchy> hierarchy = memory_hierarchy_in(mount);
    if (!hierarchy) continue;
    for (const std::string& line : own) {
      const size_t first = line.find(':'), second = line.find(':', first + 1);
      if (first == std::string::npos || second == std::string::npos) continue;
      const std::string controllers = line.substr(first + 1, second - first - 1);
      if (hierarchy->is_v2 ? controllers.empty() : is_listed(controllers, "memory"))
        hierarchy->path = line.substr(second + 1);
    }
    if (!hierarchy->path.empty()) all.push_back(*hierarchy);
  }
  return all;
}

// The process's cgroup as a path below the mount point; "" if it is the mounted cgroup itself, or
// invisible.
std::string path_below_mount(const Hierarchy& hierarchy) {
  std::string path = hierarchy.path;
  if (hierarchy.mount_root != "/") {
    const bool is_below =
        path == hierarchy.mount_root || path.rfind(hierarchy.mount_root + "/", 0) == 0;
    path = is_below ? path.substr(hierarchy.mount_root.size()) : "";
  }
  const bool is_outside = path.rfind("/..", 0) == 0;  // outside of this cgroup namespace
  return path == "/" || is_outside ? "" : path;
}

void add_from_below(const Hierarchy& hierarchy, const std::string& root,
                    std::vector<MemoryCgroup>* all) {
  const std::string top = root + hierarchy.mount_point;
  const std::string above = hierarchy.mount_root == "/" ? "" : hierarchy.mount_root;
  std::string path = path_below_mount(hierarchy);
  while (all->size() < kMemoryCgroupsMax) {
    const std::string name = above + path;
    all->push_back({top + path, name.empty() ? "/" : name, hierarchy.is_v2});
    if (path.empty()) return;
    OC_CHECK(path.front() == '/');
    path.resize(path.find_last_of('/'));
    if (!hierarchy.is_v2 && number_in(top + path + "/memory.use_hierarchy") == uint64_t{0}) return;
  }
}

}  // namespace

std::vector<MemoryCgroup> memory_cgroups(const std::string& root) {
  std::vector<MemoryCgroup> all;
  for (const Hierarchy& hierarchy : hierarchies(root)) add_from_below(hierarchy, root, &all);
  OC_CHECK(all.size() <= kMemoryCgroupsMax);
  return all;
}

}  // namespace outcore::os
