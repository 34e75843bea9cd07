#include "arrays/commands/array_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "arrays/commands/array_file.h"
#include "cli/assert.h"

namespace outcore::cli {
namespace {

using Color = std::array<uint8_t, 3>;

struct Colors {
  const char* name;
  std::vector<uint32_t> stops;  // evenly spaced, 0xRRGGBB
  Color nan, hatch;
};

const std::vector<Colors>& all_colors() {
  static const std::vector<Colors> kAll = {
      {"viridis",
       {0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b,
        0xfde725},
       {216, 216, 216},
       {150, 150, 150}},
      {"magma",
       {0x000004, 0x180f3d, 0x440f76, 0x721f81, 0x9e2f7f, 0xcd4071, 0xf1605d, 0xfd9668, 0xfeca8d,
        0xfcfdbf},
       {150, 200, 200},
       {90, 140, 140}},
      {"coolwarm",
       {0x3b4cc0, 0x6788ee, 0x9abbff, 0xc9d7f0, 0xdddddd, 0xf7c4ac, 0xf59c7d, 0xdf614d, 0xb40426},
       {96, 96, 96},
       {40, 40, 40}},
      {"gray", {0x000000, 0xffffff}, {230, 120, 120}, {170, 30, 30}},
  };
  return kAll;
}

Color color_at(const Colors& colors, double part) {
  CLI_CHECK(colors.stops.size() >= 2);
  const double place = std::clamp(part, 0.0, 1.0) * static_cast<double>(colors.stops.size() - 1);
  const size_t at = std::min(static_cast<size_t>(place), colors.stops.size() - 2);
  const double rest = place - static_cast<double>(at);
  Color color;
  for (unsigned i = 0; i < 3; ++i) {
    const double a = colors.stops[at] >> (16 - 8 * i) & 255;
    const double b = colors.stops[at + 1] >> (16 - 8 * i) & 255;
    color[i] = static_cast<uint8_t>(std::lround(a + (b - a) * rest));
  }
  return color;
}

void paint(Picture* picture, uint64_t x, uint64_t y, const Color& color) {
  CLI_CHECK(x < picture->width && y < picture->height);
  std::copy(color.begin(), color.end(), picture->rgb.begin() + 3 * (y * picture->width + x));
}

Picture blank(uint64_t width, uint64_t height) {
  Picture picture{static_cast<uint32_t>(width), static_cast<uint32_t>(height), {}};
  picture.rgb.assign(width * height * 3, 255);
  return picture;
}

bool is_hatched(uint64_t x, uint64_t y) { return (x + y) % 8 < 2; }

}  // namespace

void Numbers::add(double value) {
  if (std::isnan(value)) {
    ++nan;
  } else if (std::isinf(value)) {
    ++infinite;
  } else {
    min = finite == 0 ? value : std::min(min, value);
    max = finite == 0 ? value : std::max(max, value);
    sum += value;
    ++finite;
  }
}

Cells::Cells(uint64_t rows, uint64_t columns, uint64_t side_max)
    : all_rows_(rows),
      all_columns_(columns),
      rows_(std::min(rows, side_max)),
      columns_(std::min(columns, side_max)),
      cells_(rows_ * columns_) {}

void Cells::add(uint64_t row, uint64_t column, double value) {
  CLI_CHECK(row < all_rows_ && column < all_columns_);
  const auto scaled = [](uint64_t at, uint64_t to, uint64_t from) {
    return static_cast<uint64_t>(static_cast<__uint128_t>(at) * to / from);
  };
  Cell& cell =
      cells_[scaled(row, rows_, all_rows_) * columns_ + scaled(column, columns_, all_columns_)];
  if (std::isnan(value)) return;
  cell.low = cell.count == 0 ? value : std::min(cell.low, value);
  cell.high = cell.count == 0 ? value : std::max(cell.high, value);
  cell.sum += value;
  ++cell.count;
}

double Cells::at(uint64_t row, uint64_t column) const {
  CLI_CHECK(row < rows_ && column < columns_);
  const Cell& cell = cells_[row * columns_ + column];
  if (cell.count == 0) return std::numeric_limits<double>::quiet_NaN();
  return cell.sum / cell.count;
}

double Cells::low(uint64_t row, uint64_t column) const {
  return cells_[row * columns_ + column].low;
}
double Cells::high(uint64_t row, uint64_t column) const {
  return cells_[row * columns_ + column].high;
}

std::vector<std::string> color_names() {
  std::vector<std::string> names;
  for (const Colors& colors : all_colors()) names.emplace_back(colors.name);
  return names;
}

// If there are few cells they are drawn larger, and a narrow plane is drawn wider than a line.
Picture map_of(const Cells& cells, double low, double high, const std::string& name) {
  constexpr uint64_t kSideMin = 512;
  const auto is_named = [&name](const Colors& colors) { return name == colors.name; };
  const auto found = std::find_if(all_colors().begin(), all_colors().end(), is_named);
  CLI_CHECK(found != all_colors().end());
  const Colors& colors = *found;
  CLI_CHECK(cells.rows() != 0 && cells.columns() != 0);
  const uint64_t longer = std::max(cells.rows(), cells.columns());
  const uint64_t times = std::max<uint64_t>(kSideMin / longer, 1);
  Picture picture = blank(cells.columns() * times, cells.rows() * times);
  for (uint64_t y = 0; y < picture.height; ++y)
    for (uint64_t x = 0; x < picture.width; ++x) {
      const double value = cells.at(y / times, x / times);
      const double part = high > low ? (value - low) / (high - low) : 0.5;
      paint(&picture, x, y,
            !std::isnan(value) ? color_at(colors, part)
            : is_hatched(x, y) ? colors.hatch
                               : colors.nan);
    }
  return picture;
}

Picture curve_of(const Cells& cells, double low, double high) {
  constexpr uint64_t kWidth = 1024, kHeight = 400, kMargin = 8;
  constexpr Color kFrame = {120, 120, 120}, kZero = {200, 200, 200}, kCurve = {0x31, 0x68, 0x8e};
  constexpr Color kNan = {216, 216, 216}, kHatch = {150, 150, 150};
  Picture picture = blank(kWidth, kHeight);
  const double span = high > low ? high - low : 1;
  const auto y_of = [&](double value) {
    const double part = std::clamp((value - low) / span, 0.0, 1.0);
    return kHeight - 1 - kMargin -
           static_cast<uint64_t>(std::lround(part * (kHeight - 1 - 2 * kMargin)));
  };
  if (low < 0 && high > 0)
    for (uint64_t x = 0; x < kWidth; ++x) paint(&picture, x, y_of(0), kZero);
  uint64_t before = kHeight;  // none
  for (uint64_t x = kMargin; x < kWidth - kMargin; ++x) {
    const uint64_t column = (x - kMargin) * cells.columns() / (kWidth - 2 * kMargin);
    if (std::isnan(cells.at(0, column))) {
      for (uint64_t y = 0; y < kHeight; ++y)
        paint(&picture, x, y, is_hatched(x, y) ? kHatch : kNan);
      before = kHeight;
      continue;
    }
    const uint64_t middle = y_of(cells.at(0, column));
    uint64_t top = std::min(y_of(cells.high(0, column)), middle);
    uint64_t bottom = std::max(y_of(cells.low(0, column)), middle);
    if (before != kHeight) {
      top = std::min(top, before);
      bottom = std::max(bottom, before);
    }
    before = middle;
    for (uint64_t y = top; y <= std::min(bottom + 1, kHeight - 1); ++y)
      paint(&picture, x, y, kCurve);
  }
  for (uint64_t x = 0; x < kWidth; ++x)
    for (const uint64_t y : {uint64_t{0}, kHeight - 1}) paint(&picture, x, y, kFrame);
  for (uint64_t y = 0; y < kHeight; ++y)
    for (const uint64_t x : {uint64_t{0}, kWidth - 1}) paint(&picture, x, y, kFrame);
  return picture;
}

Status write_png(const Picture& picture, const std::string& path) {
  const auto found = load_module("png", "libpng-dev", "outcore_write_png");
  if (!found) return found.error();
  using Write = Status (*)(const Picture&, const std::string&);
  return reinterpret_cast<Write>(found.value())(picture, path);
}

}  // namespace outcore::cli
