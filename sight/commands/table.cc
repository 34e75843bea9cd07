#include "sight/commands/table.h"

#include <cmath>
#include <numeric>

#include "cli/assert.h"

namespace outcore::cli {

std::string text_of(const Line& line) {
  std::string text;
  for (const Span& span : line) text += span.text;
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::vector<Fitted> fit_columns(const std::vector<Wanted>& columns, size_t width) {
  std::vector<size_t> order(columns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return columns[a].rank < columns[b].rank; });
  std::vector<bool> is_shown(columns.size());
  size_t taken = 0;
  for (const size_t index : order) {
    const size_t needed = columns[index].width + (taken == 0 ? 0 : 1);
    // The first is there in any case; a narrower one may still find room where another did not.
    if (taken != 0 && taken + needed > width) continue;
    is_shown[index] = true;
    taken += needed;
  }
  std::vector<Fitted> fitted;
  for (size_t i = 0; i < columns.size(); ++i)
    if (is_shown[i]) fitted.push_back({i, columns[i].width});
  // One column each in turn, so that all that may be wider get the same.
  for (bool is_any = true; is_any && taken < width;) {
    is_any = false;
    for (Fitted& one : fitted) {
      if (taken >= width || one.width >= columns[one.index].width_max) continue;
      ++one.width, ++taken;
      is_any = true;
    }
  }
  CLI_CHECK(fitted.empty() == columns.empty());
  CLI_CHECK(taken <= width || fitted.size() == 1);
  return fitted;
}

void add_cell(const Cell& cell, size_t width, bool is_right, bool keeps_end, const Glyphs& glyphs,
              Line* line) {
  CLI_CHECK(line != nullptr);
  std::string text = keeps_end ? cut_start(cell.text, width, glyphs) : cell.text;
  text = is_right ? fit_right(cut_end(text, width, glyphs), width) : fit(text, width, glyphs);
  if (!cell.filled) {
    line->push_back({text, cell.look});
    return;
  }
  // Figures of a bar are ASCII: a byte is a column.
  const double share = std::isfinite(*cell.filled) ? std::clamp(*cell.filled, 0.0, 1.0) : 0;
  const auto filled =
      std::min(text.size(), static_cast<size_t>(std::lround(share * static_cast<double>(width))));
  if (filled > 0) line->push_back({text.substr(0, filled), Look::kReverse});
  if (filled < text.size()) line->push_back({text.substr(filled), cell.look});
}

}  // namespace outcore::cli
