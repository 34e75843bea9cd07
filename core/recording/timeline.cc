#include "core/recording/timeline.h"

#include <algorithm>
#include <cmath>

#include "core/base/assert.h"

namespace outcore::recording {

using base::Json;

bool Timeline::is_due(double at_s) const {
  return at_s >= step_s_ * static_cast<double>(moments_.size());
}

void Timeline::note(double at_s, const Moment& now) {
  OC_CHECK(at_s >= 0);
  while (at_s / step_s_ >= static_cast<double>(kStepsMax)) {  // every second moment stays
    for (size_t i = 0; 2 * i < moments_.size(); ++i) moments_[i] = moments_[2 * i];
    moments_.resize((moments_.size() + 1) / 2);
    step_s_ *= 2;
  }
  const auto steps = static_cast<size_t>(at_s / step_s_);
  // Nobody looked meanwhile: what happened is told of the last step. The beginning knows no budget.
  while (moments_.size() < steps) {
    Moment before = moments_.back();
    before.budget_bytes = moments_.size() == 1 ? now.budget_bytes : before.budget_bytes;
    moments_.push_back(before);
  }
  moments_.push_back(now);
}

Json Timeline::to_json() const {
  Json json;
  json["step_s"] = step_s_;
  const auto put = [&](const char* name, double scale, const auto& count_of) {
    Json& values = json[name] = Json::array();
    for (size_t i = 1; i < moments_.size(); ++i) {
      const uint64_t now = count_of(moments_[i]), before = count_of(moments_[i - 1]);
      values.push_back(static_cast<double>(now - std::min(now, before)) * scale);
    }
  };
  put("stalled_s", 1e-9,
      [](const Moment& m) { return m.counters.fault_ns + m.counters.call_wait_ns; });
  put("fills", 1, [](const Moment& m) { return m.counters.fills + m.counters.prefetch_fills; });
  put("read_bytes", 1, [](const Moment& m) { return m.counters.read_bytes; });
  put("written_bytes", 1, [](const Moment& m) { return m.counters.written_bytes; });
  put("evictions", 1, [](const Moment& m) { return m.counters.evictions; });
  put("refaults", 1, [](const Moment& m) { return m.counters.refaults; });
  for (const char* name : {"used_bytes", "budget_bytes"}) {
    Json& values = json[name] = Json::array();
    for (size_t i = 1; i < moments_.size(); ++i)
      values.push_back(name[0] == 'u' ? moments_[i].used_bytes : moments_[i].budget_bytes);
  }
  return json;
}

void HeatMap::join_columns() {
  for (uint8_t kind = 0; kind < kKinds; ++kind)
    for (uint32_t row = 0; row < kRows; ++row)
      for (uint32_t to = 0, from = 0; to < kColumns; ++to, from += 2) {
        const auto of = static_cast<Kind>(kind);
        cell(of, to, row) = from < kColumns ? cell(of, from, row) + cell(of, from + 1, row) : 0;
      }
  column_s_ *= 2;
}

void HeatMap::join_rows() {
  for (uint8_t kind = 0; kind < kKinds; ++kind)
    for (uint32_t column = 0; column < kColumns; ++column)
      for (uint32_t to = 0, from = 0; to < kRows; ++to, from += 2) {
        const auto of = static_cast<Kind>(kind);
        cell(of, column, to) =
            from < kRows ? cell(of, column, from) + cell(of, column, from + 1) : 0;
      }
  row_bytes_ *= 2;
}

void HeatMap::note(Kind kind, double at_s, uint64_t offset, double weight) {
  OC_ASSERT(kind < kKinds);
  OC_ASSERT(at_s >= 0);
  while (at_s / column_s_ >= static_cast<double>(kColumns)) join_columns();
  while (offset / row_bytes_ >= kRows) join_rows();
  end_bytes_ = std::max(end_bytes_, offset + 1);
  cell(kind, static_cast<uint32_t>(at_s / column_s_), static_cast<uint32_t>(offset / row_bytes_)) +=
      static_cast<float>(weight);
}

Json HeatMap::to_json(double seconds, uint64_t size_bytes) const {
  const double columns =
      std::min(std::floor(seconds / column_s_) + 1, double{kColumns});  // what ends it, too
  Json json;
  json["columns"] = static_cast<uint64_t>(columns);
  // To the end of the file, if that is near.
  const uint64_t end = std::max(end_bytes_, std::min(size_bytes, kRows * row_bytes_));
  const auto rows =
      static_cast<uint32_t>(std::max<uint64_t>((end + row_bytes_ - 1) / row_bytes_, 1));
  OC_CHECK(rows <= kRows);
  json["rows"] = uint64_t{rows};
  json["seconds"] = columns * column_s_;
  json["bytes"] = rows * row_bytes_;
  static constexpr const char* kNames[] = {"fills", "evictions", "refaults"};
  for (uint32_t kind = 0; kind < kKinds; ++kind) {
    // Row by row, a number a column; -n stands for n cells without anything.
    Json& cells = json[kNames[kind]] = Json::array();
    int64_t empty = 0;
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t column = 0; column < static_cast<uint32_t>(columns); ++column) {
        const float n = std::round(cells_[(kind * kColumns + column) * kRows + row]);
        if (n != 0) {
          if (empty != 0) cells.push_back(-empty);
          cells.push_back(static_cast<uint64_t>(n));
        }
        empty = n != 0 ? 0 : empty + 1;
      }
  }
  return json;
}

}  // namespace outcore::recording
