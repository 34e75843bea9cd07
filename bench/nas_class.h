// NasClass: the sizes of the NAS Parallel Benchmarks that have a name: S, W, A, B and C.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/options.h"
#include "outcore/result.h"

namespace outcore::bench {

bool is_nas_workload(const std::string& workload);
// What its arrays take. nullopt: the workload has no classes, or none of that name.
std::optional<uint64_t> nas_class_bytes(const std::string& workload, const std::string& name);
// Errors: EINVAL: what was asked of a workload that has classes cannot be, or of another.
Status check_nas_class(const Options& options);

}  // namespace outcore::bench
