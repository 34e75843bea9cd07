#include "bench/nas_class.h"

#include <cerrno>

#include "bench/fourier_grid.h"
#include "bench/integer_keys.h"
#include "bench/sparse_problem.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

// What --size may be.
struct NasBounds {
  const char* workload;
  uint64_t bytes_min, bytes_max;
};

constexpr NasBounds kNasBounds[] = {{"is", IntegerKeys::kBytesMin, IntegerKeys::kBytesMax},
                                    {"cg", SparseProblem::kBytesMin, SparseProblem::kBytesMax},
                                    {"ft", FourierGrid::kBytesMin, FourierGrid::kBytesMax}};

const NasBounds* bounds_of(const std::string& workload) {
  for (const NasBounds& bounds : kNasBounds)
    if (bounds.workload == workload) return &bounds;
  return nullptr;
}

Error nas_refusal(std::string why) { return Error{EINVAL, std::move(why)}; }

}  // namespace

bool is_nas_workload(const std::string& workload) { return bounds_of(workload) != nullptr; }

std::optional<uint64_t> nas_class_bytes(const std::string& workload, const std::string& name) {
  const auto bytes_of = [](const auto& problem) {
    return problem ? std::optional(problem->size_bytes()) : std::nullopt;
  };
  if (workload == "is") return bytes_of(IntegerKeys::of_class(name));
  if (workload == "cg") return bytes_of(SparseProblem::of_class(name));
  if (workload == "ft") return bytes_of(FourierGrid::of_class(name));
  return std::nullopt;
}

Status check_nas_class(const Options& o) {
  const NasBounds* const bounds = bounds_of(o.workload);
  if (bounds == nullptr) return {};
  if (!o.nas_class.empty() && !nas_class_bytes(o.workload, o.nas_class))
    return nas_refusal("class '" + o.nas_class + "' is unknown: use one of S, W, A, B, C");
  if (o.size_bytes < bounds->bytes_min || o.size_bytes > bounds->bytes_max)
    return nas_refusal("--size must be " + cli::format_bytes(bounds->bytes_min) + " … " +
                       cli::format_bytes(bounds->bytes_max) + " of arrays");
  if (o.loops > kLoopsMax) return nas_refusal("--passes must be 1 … 100");
  return {};
}

}  // namespace outcore::bench
