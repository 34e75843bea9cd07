#include "core/os/memory_limit.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/memory_cgroups.h"
#include "outcore/runtime.h"

namespace outcore::os {
namespace {

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
// cgroup v1 writes "no limit" as the largest multiple of a page that fits in 63 bits.
constexpr uint64_t kBytesMax = uint64_t{1} << 60;

uint64_t limit_or_none(std::optional<uint64_t> limit) {
  return limit && *limit < kBytesMax ? *limit : kNone;
}

uint64_t sum_behind(std::string_view text, std::span<const std::string_view> keys) {
  uint64_t sum = 0;
  for (const std::string_view key : keys) sum += number_behind(text, key).value_or(0);
  return sum;
}

// What a cgroup is bound to (kNone: nothing), what it uses, and how much of that the kernel would
// drop.
struct Use {
  uint64_t limit = kNone, used = 0, reclaimable = 0;

  uint64_t left() const {
    OC_CHECK(limit != kNone);
    const uint64_t kept = used > reclaimable ? used - reclaimable : 0;
    return limit > kept ? limit - kept : 0;
  }
};

// What is not there, or may not be read, is not known, as ever. What would be there if descriptors
// were left is an error.
KernelText open_text(const std::string& path, int* error) {
  KernelText text(path);
  const int why = text.error();
  if (why == EMFILE || why == ENFILE || why == ENOMEM) *error = why;
  return text;
}

std::string below(const std::string& root, const std::string& path) {
  OC_CHECK(!root.empty() && path.starts_with('/'));
  return root == "/" ? path : root + path;
}

std::vector<MemoryCgroup> cgroups_below(const std::string& root) {
  return memory_cgroups(root == "/" ? "" : root);
}

}  // namespace

MemoryMeter::Group MemoryMeter::open(const MemoryCgroup& cgroup, int* error) {
  const std::string at = cgroup.folder + "/memory.";
  Group group;
  group.is_v2 = cgroup.is_v2;
  group.source = "in cgroup " + cgroup.name;
  group.max = open_text(at + (cgroup.is_v2 ? "max" : "limit_in_bytes"), error);
  if (cgroup.is_v2) group.high = open_text(at + "high", error);
  group.current = open_text(at + (cgroup.is_v2 ? "current" : "usage_in_bytes"), error);
  group.stat = open_text(at + "stat", error);
  return group;
}

MemoryMeter::MemoryMeter(const std::string& root)
    : own_(open_text(below(root, "/proc/self/cgroup"), &error_)),
      meminfo_(open_text(below(root, "/proc/meminfo"), &error_)) {
  char buffer[KernelText::kBytesMax];
  own_at_start_ = own_.read(buffer);
  for (const MemoryCgroup& cgroup : cgroups_below(root)) {
    Group group = open(cgroup, &error_);
    const bool bounds = group.max.is_open() || group.high.is_open() || group.stat.is_open();
    if (bounds) groups_.push_back(std::move(group));
  }
  OC_CHECK(groups_.size() <= kMemoryCgroupsMax);
}

bool MemoryMeter::bound_by(const Group& group, std::span<char> buffer, Reading* reading) {
  static constexpr std::string_view kOfV2[] = {"inactive_file", "active_file", "slab_reclaimable"};
  static constexpr std::string_view kOfV1[] = {"total_inactive_file", "total_active_file"};
  bool is_known = true;
  const auto read = [&](const KernelText& text) {
    const std::string_view now = text.read(buffer);
    if (text.is_open() && now.empty()) is_known = false;
    return now;
  };
  Use use;
  use.limit = limit_or_none(number_at_start(read(group.max)));
  if (group.is_v2)
    use.limit = std::min(use.limit, limit_or_none(number_at_start(read(group.high))));
  if (group.is_v2 && use.limit == kNone) return is_known;  // its statistics take the kernel a while
  const std::optional<uint64_t> used = number_at_start(read(group.current));
  const std::string_view stat = read(group.stat);
  // Of v1, this value covers ancestors that are invisible inside a container.
  if (!group.is_v2)
    use.limit =
        std::min(use.limit, limit_or_none(number_behind(stat, "hierarchical_memory_limit")));
  if (use.limit == kNone) return is_known;
  use.used = used.value_or(0);
  use.reclaimable = group.is_v2 ? sum_behind(stat, kOfV2) : sum_behind(stat, kOfV1);
  reading->limit_bytes = std::min(reading->limit_bytes, use.limit);
  if (use.left() < reading->bytes) {
    reading->bytes = use.left();
    reading->source = &group.source;
  }
  return is_known && used.has_value();
}

MemoryMeter::Reading MemoryMeter::read_machine(const KernelText& meminfo, std::span<char> buffer) {
  const std::string_view text = meminfo.read(buffer);
  const uint64_t kib =
      number_behind(text, "MemAvailable:").value_or(number_behind(text, "MemFree:").value_or(0));
  const uint64_t total_kib = number_behind(text, "MemTotal:").value_or(kib);
  return {kib * 1024, std::max(kib, total_kib) * 1024, nullptr};
}

MemoryMeter::Reading MemoryMeter::read() const {
  char buffer[KernelText::kBytesMax];
  if (own_.is_open() && own_.read(buffer) != own_at_start_) return {};
  Reading reading = read_machine(meminfo_, buffer);
  for (const Group& group : groups_)
    if (!bound_by(group, buffer, &reading)) return {};
  return reading;
}

MemoryAvailable MemoryMeter::read_once(const std::string& root) {
  char buffer[KernelText::kBytesMax];
  Reading reading = read_machine(KernelText(below(root, "/proc/meminfo")), buffer);
  std::string source = "on this machine";
  for (const MemoryCgroup& cgroup : cgroups_below(root)) {
    int ignored = 0;
    const Group group = open(cgroup, &ignored);
    static_cast<void>(bound_by(group, buffer, &reading));  // what is not known bounds nothing
    if (reading.source == &group.source) source = group.source;
    reading.source = nullptr;  // the group ends here
  }
  return {reading.bytes, source, reading.limit_bytes};
}

MemoryAvailable memory_available(const std::string& root) { return MemoryMeter::read_once(root); }

std::pair<uint64_t, std::string> default_budget_of(const MemoryAvailable& available) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  // A process that has used up what there was gets some of it all the same; but never more than
  // half of what its cgroup may have, which kills who has too much.
  const uint64_t half_of_limit = base::round_down(available.limit_bytes / 2, kMiB);
  const uint64_t least =
      available.limit_bytes == 0 ? 16 * kMiB : std::clamp(half_of_limit, 4 * kMiB, 16 * kMiB);
  const std::string of = base::format_bytes(available.bytes) + " available " + available.source;
  const uint64_t half = base::round_down(available.bytes / 2, kMiB);
  if (half < least) return {least, "the least of a default; " + of};
  return {half, "half of " + of};
}

std::optional<uint64_t> number_in(const std::string& path) {
  char buffer[256];
  return number_at_start(KernelText(path).read(buffer));
}

}  // namespace outcore::os

namespace outcore {

std::pair<uint64_t, std::string> default_budget() {
  return os::default_budget_of(os::memory_available());
}

}  // namespace outcore
