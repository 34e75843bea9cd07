// HeatCells: the cells of a heat map that are not empty, as its JSON has them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/base/json.h"

namespace outcore::recording {

struct HeatCell {
  uint64_t column = 0, row = 0;
  double count = 0;
};

inline std::vector<HeatCell> heat_cells(const base::Json& map, const char* kind) {
  const uint64_t columns = map.value("columns", uint64_t{0}), rows = map.value("rows", uint64_t{0});
  std::vector<HeatCell> cells;
  uint64_t at = 0;
  for (const base::Json& item : map[kind]) {
    const double n = item.as<double>().value_or(NAN);
    EXPECT_NE(n, 0);
    if (n < 0) {
      at += static_cast<uint64_t>(-n);
      continue;
    }
    EXPECT_LT(at, columns * rows);
    cells.push_back({at % columns, at / columns, n});
    ++at;
  }
  EXPECT_LE(at, columns * rows);
  return cells;
}

inline double heat_total(const base::Json& map, const char* kind) {
  double sum = 0;
  for (const HeatCell& cell : heat_cells(map, kind)) sum += cell.count;
  return sum;
}

}  // namespace outcore::recording
