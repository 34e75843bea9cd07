// System facts: what `outcore info` says about the kernel and this process, with remedies for what
// is missing. Any thread; not on the fault path.
#pragma once

#include <string>
#include <vector>

#include "core/os/kernel_features.h"
#include "outcore/runtime.h"

namespace outcore::os {

// Reads limits from `root`/proc; `root` is "/", or a made-up tree in tests.
std::vector<SystemFact> system_facts_of(const KernelFeatures& kernel,
                                        const std::string& root = "/");

}  // namespace outcore::os
