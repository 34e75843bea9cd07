// Memory pressure: how long tasks stood still because memory was short, as the kernel counts it
// (pressure stall information, PSI; Documentation/accounting/psi.rst). Any thread; not on the fault
// path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/os/kernel_text.h"

namespace outcore::os {

struct MemoryPressure {
  // Shares of the last ten seconds in which some task stood still, and in which all did.
  double some_percent = 0, full_percent = 0;
  // Since the beginning, while some did: only how it grows means anything.
  uint64_t stalled_us = 0;
};

// PressureMeter: the pressure of the machine and of the cgroup (v2) that the process was in when
// the meter was made. What it reads it keeps open: see kernel_text.h.
class PressureMeter {
 public:
  // `root` contains proc and sys: "/", or a made-up tree in tests.
  explicit PressureMeter(const std::string& root = "/");
  // The larger of both, whose stalls are added up. nullopt: the kernel counts neither (it is older
  // than 4.20, or was started without PSI). Allocates nothing.
  std::optional<MemoryPressure> read() const;

 private:
  KernelText machine_, cgroup_;
};

// Of this moment.
std::optional<MemoryPressure> memory_pressure(const std::string& root = "/");

}  // namespace outcore::os
