// Work: what every library of the comparison writes and reads: variables, boxes, values, checking.
//
// As S3D writes a checkpoint: four variables of doubles over one grid of three dimensions, two of
// them with one value a cell (pressure, temperature) and two with several (velocity 3, species 11),
// whose first dimension counts these and is not divided. 16 values a cell.
#pragma once

#include <mpi.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/random.h"

namespace outcore::rivals {

// One process cannot go on: all of them end, with this line and status 1.
[[noreturn]] inline void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

inline void require(bool is_done, const std::string& what) {
  if (!is_done) fail(what + " failed");
}

using Dims = std::vector<uint64_t>;

inline uint64_t count_of(const Dims& dims) {
  uint64_t count = 1;
  for (const uint64_t n : dims) count *= n;
  return count;
}

// Elements, the last dimension fastest; in memory it is dense.
struct Box {
  Dims at, dims;
  uint64_t count() const { return count_of(dims); }
};

// Of four processes 1 x 2 x 2, of eight 2 x 2 x 2; or 4 x 1 x 1, 8 x 1 x 1.
enum class Division { kBoxes, kPlanes };

struct Variable {
  const char* name;
  uint64_t components;  // of a cell; 1: the variable has three dimensions, else four
  uint64_t first;       // the number of its first component among all
};

constexpr std::array<Variable, 4> kVariables = {
    {{"pressure", 1, 0}, {"temperature", 1, 1}, {"velocity", 3, 2}, {"species", 11, 5}}};
constexpr uint64_t kComponents = 16;

using Data = std::array<std::vector<double>, kVariables.size()>;  // a dense box of each variable

struct Work {
  unsigned rank = 0, size = 1;
  uint64_t side = 0;  // cells along each dimension of the grid
  uint64_t seed = 1;
  std::string folder;   // the files are in it
  std::string variant;  // of the library: ADIOS' transport

  void set_size(uint64_t size_bytes) {
    const double cells = static_cast<double>(size_bytes) / 8 / kComponents;
    side = static_cast<uint64_t>(std::cbrt(cells) + 1e-6) / 8 * 8;
  }
  uint64_t bytes() const { return side * side * side * kComponents * 8; }
  std::string path(const std::string& name) const { return folder + "/" + name; }

  Dims shape(const Variable& v) const {
    if (v.components == 1) return {side, side, side};
    return {v.components, side, side, side};
  }
  Box box(const Variable& v, unsigned of_rank, Division division) const {
    const Dims across = division == Division::kPlanes
                            ? Dims{size, 1, 1}
                            : Dims{size > 4 ? 2u : 1u, size > 2 ? 2u : 1u, size > 1 ? 2u : 1u};
    const Dims place = {of_rank / (across[1] * across[2]), of_rank / across[2] % across[1],
                        of_rank % across[2]};
    Box box;
    if (v.components > 1) box = {{0}, {v.components}};
    for (size_t d = 0; d < 3; ++d) {
      box.at.push_back(place[d] * side / across[d]);
      box.dims.push_back((place[d] + 1) * side / across[d] - box.at.back());
    }
    return box;
  }
  // No two neighbours are alike.
  double value(uint64_t number) const {
    return static_cast<double>(bench::mix(number + seed) >> 11);
  }
};

// see(at, number): for each row of the box, whose first element is number `at` of the box and
// element `number` of the whole array; rows have as many elements as the box' last dimension.
template <typename See>
void for_each_row(const Dims& shape, const Box& box, See see) {
  const size_t last = shape.size() - 1;
  const uint64_t rows = box.count() / box.dims[last];
  for (uint64_t row = 0; row < rows; ++row) {
    uint64_t rest = row, number = box.at[last], step = shape[last];
    for (size_t d = last; d-- > 0;) {
      number += (box.at[d] + rest % box.dims[d]) * step;
      rest /= box.dims[d];
      step *= shape[d];
    }
    see(row * box.dims[last], number);
  }
}

inline void fill(const Work& work, const Variable& v, const Box& box, double* into) {
  const uint64_t first = v.first * work.side * work.side * work.side, run = box.dims.back();
  for_each_row(work.shape(v), box, [&](uint64_t at, uint64_t number) {
    for (uint64_t i = 0; i < run; ++i) into[at + i] = work.value(first + number + i);
  });
}

// How many elements are not what was written. row(at): where the row at this element begins.
template <typename Row>
uint64_t count_wrong(const Work& work, const Variable& v, const Box& box, Row row) {
  const uint64_t first = v.first * work.side * work.side * work.side, run = box.dims.back();
  uint64_t wrong = 0;
  for_each_row(work.shape(v), box, [&](uint64_t at, uint64_t number) {
    const double* const seen = row(at);
    for (uint64_t i = 0; i < run; ++i) {
      const double right = work.value(first + number + i);
      wrong += std::memcmp(&right, seen + i, sizeof right) != 0 ? 1 : 0;
    }
  });
  return wrong;
}

}  // namespace outcore::rivals
