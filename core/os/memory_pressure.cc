#include "core/os/memory_pressure.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/base/assert.h"
#include "core/os/memory_cgroups.h"

namespace outcore::os {
namespace {

// What follows "name=" in the line that begins with `kind`; empty if there is none.
std::string_view field_of(std::string_view text, std::string_view kind, std::string_view name) {
  OC_CHECK(!kind.empty() && name.ends_with('='));
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(kind)) continue;
    const size_t at = line.find(name);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = line.substr(at + name.size());
    return rest.substr(0, rest.find(' '));
  }
  return {};
}

std::optional<double> percent_of(std::string_view text, std::string_view kind) {
  const std::string_view field = field_of(text, kind, "avg10=");
  double percent = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), percent);
  if (error != std::errc() || !(percent >= 0)) return std::nullopt;
  return std::min(percent, 100.0);
}

// "some avg10=0.00 avg60=0.00 avg300=0.12 total=4705036", and the same for "full".
std::optional<MemoryPressure> pressure_in(std::string_view text) {
  const std::optional<double> some = percent_of(text, "some ");
  if (!some) return std::nullopt;
  MemoryPressure pressure;
  pressure.some_percent = *some;
  pressure.full_percent = percent_of(text, "full ").value_or(0);
  pressure.stalled_us = number_at_start(field_of(text, "some ", "total=")).value_or(0);
  return pressure;
}

}  // namespace

PressureMeter::PressureMeter(const std::string& root) {
  OC_CHECK(!root.empty());
  const std::string prefix = root == "/" ? "" : root;
  machine_ = KernelText(prefix + "/proc/pressure/memory");
  for (const MemoryCgroup& cgroup : memory_cgroups(prefix)) {
    if (!cgroup.is_v2) continue;
    cgroup_ = KernelText(cgroup.folder + "/memory.pressure");
    return;  // those above it count what others do within limits of their own
  }
}

std::optional<MemoryPressure> PressureMeter::read() const {
  char buffer[KernelText::kBytesMax];
  const std::optional<MemoryPressure> machine = pressure_in(machine_.read(buffer));
  const std::optional<MemoryPressure> cgroup = pressure_in(cgroup_.read(buffer));
  if (!machine || !cgroup) return machine ? machine : cgroup;
  MemoryPressure both;
  both.some_percent = std::max(machine->some_percent, cgroup->some_percent);
  both.full_percent = std::max(machine->full_percent, cgroup->full_percent);
  both.stalled_us = machine->stalled_us + cgroup->stalled_us;
  OC_CHECK(both.some_percent <= 100 && both.full_percent <= 100);
  return both;
}

std::optional<MemoryPressure> memory_pressure(const std::string& root) {
  return PressureMeter(root).read();
}

}  // namespace outcore::os
