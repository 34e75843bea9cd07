#include "arrays/container/box.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"

namespace outcore::arrays {

std::string text_of(const Dims& dims) {
  if (dims.empty()) return "one value";
  std::string text;
  for (const uint64_t n : dims) text += (text.empty() ? "" : " x ") + std::to_string(n);
  return text;
}

Result<uint64_t> count_of(const Dims& dims, uint64_t element_bytes) {
  OC_CHECK(element_bytes != 0);
  if (dims.size() > kDimsMax)
    return Error{EINVAL, std::to_string(dims.size()) + " dimensions: at most " +
                             std::to_string(kDimsMax) + " will do"};
  uint64_t count = 1;
  for (const uint64_t n : dims)
    if (__builtin_mul_overflow(count, n, &count) || count > kBytesMax / element_bytes) {
      if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return uint64_t{0};
      return Error{EINVAL, text_of(dims) + " elements of " + std::to_string(element_bytes) +
                               " bytes are more than 4 EiB"};
    }
  return count;
}

Status check_box(const std::string& attempted, const Dims& shape, const Dims& offsets,
                 const Dims& dims) {
  if (dims.size() != shape.size() || offsets.size() != shape.size())
    return Error{EINVAL, attempted + ": it has " + std::to_string(shape.size()) + " dimensions (" +
                             text_of(shape) + "), the box has " + std::to_string(offsets.size()) +
                             " offsets and " + std::to_string(dims.size()) + " dimensions"};
  for (size_t d = 0; d < shape.size(); ++d)
    if (offsets[d] > shape[d] || dims[d] > shape[d] - offsets[d])
      return Error{EINVAL, attempted + ": the box ends at " + std::to_string(offsets[d]) + " + " +
                               std::to_string(dims[d]) + " in dimension " + std::to_string(d) +
                               ", where the array has " + std::to_string(shape[d])};
  return {};
}

Runs runs_of(uint64_t element_bytes, std::span<const uint64_t> there_dims,
             std::span<const uint64_t> there_at, std::span<const uint64_t> here_dims,
             std::span<const uint64_t> here_at, std::span<const uint64_t> dims) {
  OC_CHECK(element_bytes != 0 && dims.size() <= kDimsMax);
  OC_CHECK(there_dims.size() == dims.size() && there_at.size() == dims.size());
  OC_CHECK(here_dims.size() == dims.size() && here_at.size() == dims.size());
  Runs runs;
  runs.run_bytes = element_bytes;
  uint64_t there = element_bytes, here = element_bytes;  // strides
  std::vector<Loop> inner_first;
  bool is_run = true;  // so far the bytes are contiguous on both sides
  for (size_t d = dims.size(); d-- > 0;) {
    OC_ASSERT(dims[d] != 0 && there_at[d] + dims[d] <= there_dims[d]);
    OC_ASSERT(here_at[d] + dims[d] <= here_dims[d]);
    runs.there += there_at[d] * there;
    runs.here += here_at[d] * here;
    if (is_run) {
      runs.run_bytes *= dims[d];
      is_run = dims[d] == there_dims[d] && dims[d] == here_dims[d];
    } else if (!inner_first.empty() &&
               inner_first.back().count * inner_first.back().there == there &&
               inner_first.back().count * inner_first.back().here == here) {
      inner_first.back().count *= dims[d];
    } else if (dims[d] > 1) {
      inner_first.push_back({dims[d], there, here});
    }
    there *= there_dims[d];
    here *= here_dims[d];
  }
  runs.loops.assign(inner_first.rbegin(), inner_first.rend());
  return runs;
}

}  // namespace outcore::arrays
