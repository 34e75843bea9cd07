#include "core/os/memory_limit.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

#include "core/base/units.h"
#include "outcore/runtime.h"

namespace outcore::os {
namespace {

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
// cgroup v1 writes "no limit" as the largest multiple of a page that fits in 63 bits.
constexpr uint64_t kBytesMax = uint64_t{1} << 60;

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The number after `key` in lines of "key number" or "key: number kB"; nullopt if there is none.
std::optional<uint64_t> number_behind(const std::vector<std::string>& lines,
                                      const std::string& key) {
  for (const std::string& line : lines) {
    std::istringstream words(line);
    std::string word;
    uint64_t number = 0;
    if (words >> word >> number && word == key) return number;
  }
  return std::nullopt;
}

uint64_t limit_or_none(std::optional<uint64_t> limit) {
  return limit && *limit < kBytesMax ? *limit : kNone;
}

// The bytes that a cgroup leaves, or kNone if it has no limit.
uint64_t left_by(uint64_t limit, uint64_t used, uint64_t reclaimable) {
  if (limit == kNone) return kNone;
  const uint64_t kept = used > reclaimable ? used - reclaimable : 0;
  return limit > kept ? limit - kept : 0;
}

uint64_t left_in_v2(const std::string& folder) {
  const uint64_t limit = std::min(limit_or_none(number_in(folder + "/memory.max")),
                                  limit_or_none(number_in(folder + "/memory.high")));
  const auto stat = lines_of(folder + "/memory.stat");
  uint64_t reclaimable = 0;
  for (const char* key : {"inactive_file", "active_file", "slab_reclaimable"})
    reclaimable += number_behind(stat, key).value_or(0);
  return left_by(limit, number_in(folder + "/memory.current").value_or(0), reclaimable);
}

uint64_t left_in_v1(const std::string& folder) {
  const auto stat = lines_of(folder + "/memory.stat");
  // The second value covers ancestors that are invisible inside a container.
  const uint64_t limit = std::min(limit_or_none(number_in(folder + "/memory.limit_in_bytes")),
                                  limit_or_none(number_behind(stat, "hierarchical_memory_limit")));
  uint64_t reclaimable = 0;
  for (const char* key : {"total_inactive_file", "total_active_file"})
    reclaimable += number_behind(stat, key).value_or(0);
  return left_by(limit, number_in(folder + "/memory.usage_in_bytes").value_or(0), reclaimable);
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

void bound_by(const Hierarchy& hierarchy, const std::string& root, MemoryAvailable* available) {
  const std::string top = root + hierarchy.mount_point;
  std::string path = path_below_mount(hierarchy);
  for (;;) {
    const std::string folder = top + path;
    const uint64_t left = hierarchy.is_v2 ? left_in_v2(folder) : left_in_v1(folder);
    if (left < available->bytes) {
      const std::string above = hierarchy.mount_root == "/" ? "" : hierarchy.mount_root;
      const std::string name = above + path;
      *available = {left, "in cgroup " + (name.empty() ? "/" : name)};
    }
    if (path.empty()) return;
    path.resize(path.find_last_of('/'));
    // In v1 a parent may not account for its children; then it does not limit them.
    if (!hierarchy.is_v2 && number_in(top + path + "/memory.use_hierarchy") == uint64_t{0}) return;
  }
}

}  // namespace

MemoryAvailable memory_available(const std::string& root) {
  const std::string prefix = root == "/" ? "" : root;
  const auto meminfo = lines_of(prefix + "/proc/meminfo");
  const uint64_t kib = number_behind(meminfo, "MemAvailable:")
                           .value_or(number_behind(meminfo, "MemFree:").value_or(0));
  MemoryAvailable available{kib * 1024, "on this machine"};
  for (const Hierarchy& hierarchy : hierarchies(prefix)) bound_by(hierarchy, prefix, &available);
  return available;
}

std::pair<uint64_t, std::string> default_budget_of(const MemoryAvailable& available) {
  constexpr uint64_t kMiB = uint64_t{1} << 20, kLeast = 16 * kMiB;
  const std::string of = base::format_bytes(available.bytes) + " available " + available.source;
  const uint64_t half = base::round_down(available.bytes / 2, kMiB);
  if (half < kLeast) return {kLeast, "the least of a default; " + of};
  return {half, "half of " + of};
}

std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

}  // namespace outcore::os

namespace outcore {

std::pair<uint64_t, std::string> default_budget() {
  return os::default_budget_of(os::memory_available());
}

}  // namespace outcore
