// Timeline: what a runtime had counted at moments that lie evenly apart, and HeatMap: which parts
// of a file something happened to, and when. However long a run is, each keeps as much: where there
// is no room for more moments, two become one. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/json.h"
#include "outcore/metrics.h"

namespace outcore::recording {

class Timeline {
 public:
  static constexpr size_t kStepsMax = 240;

  struct Moment {
    Counters counters;
    uint64_t used_bytes = 0, budget_bytes = 0;
  };
  // Whether the step that is under way is over at this time, in seconds from the beginning.
  bool is_due(double at_s) const;
  // What there is now, at the end of as many steps as have passed.
  void note(double at_s, const Moment& now);
  base::Json to_json() const;

 private:
  double step_s_ = 0.1;
  std::vector<Moment> moments_{Moment()};  // [i]: at the end of step i; the first: the beginning
};

class HeatMap {
 public:
  static constexpr uint32_t kColumns = 120, kRows = 64;
  enum Kind : uint8_t { kFills, kEvictions, kRefaults, kKinds };

  void note(Kind kind, double at_s, uint64_t offset, double weight);
  base::Json to_json(double seconds, uint64_t size_bytes) const;

 private:
  void join_columns();
  void join_rows();
  float& cell(Kind kind, uint32_t column, uint32_t row) {
    return cells_[(kind * kColumns + column) * kRows + row];
  }

  double column_s_ = 0.05;
  // What was touched fills the map, also of space of which most is never used.
  uint64_t row_bytes_ = 4096, end_bytes_ = 0;
  std::vector<float> cells_ = std::vector<float>(size_t{kKinds} * kColumns * kRows);
};

}  // namespace outcore::recording
