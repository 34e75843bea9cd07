#include "bench/sparse_problem.h"

#include "bench/array_layout.h"
#include "bench/check.h"

namespace outcore::bench {
namespace {

constexpr unsigned kVectors = 5;

struct SparseClass {
  std::string_view name;
  SparseProblem problem;
};

constexpr SparseClass kSparseClasses[] = {{"S", {1400, 7, 10, 15, 8.5971775078648}},
                                          {"W", {7000, 8, 12, 15, 10.362595087124}},
                                          {"A", {14000, 11, 20, 15, 17.130235054029}},
                                          {"B", {75000, 13, 60, 75, 22.712745482631}},
                                          {"C", {150000, 15, 110, 75, 28.973605592845}}};
// With these the largest eigenvalue is about 23, whatever the number of rows, and the shift is well
// above it. Fewer passes: the answer does not change much after them.
constexpr SparseProblem kLikeClassB{0, 13, 60, 4, 0};

}  // namespace

std::optional<SparseProblem> SparseProblem::of_class(std::string_view name) {
  for (const SparseClass& one : kSparseClasses)
    if (one.name == name) return one.problem;
  return std::nullopt;
}

SparseProblem SparseProblem::fitting(uint64_t size_bytes) {
  BENCH_CHECK(size_bytes >= kBytesMin && size_bytes <= kBytesMax);
  SparseProblem fitting = kLikeClassB;
  fitting.rows = 1;
  const uint64_t row_bytes = fitting.entries_max() * (sizeof(double) + sizeof(uint32_t)) +
                             kVectors * sizeof(double) + sizeof(uint64_t);
  fitting.rows = size_bytes / row_bytes;
  while (fitting.size_bytes() > size_bytes) --fitting.rows;
  return fitting;
}

uint64_t SparseProblem::size_bytes() const {
  ArrayLayout layout;
  layout.add<double>(entries_max());
  layout.add<uint32_t>(entries_max());
  layout.add<uint64_t>(rows + 1);
  for (unsigned i = 0; i < kVectors; ++i) layout.add<double>(rows);
  return layout.size_bytes();
}

}  // namespace outcore::bench
