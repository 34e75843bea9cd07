// Table: rows of figures in as many columns as the width has room for; and lines of a page, which
// both a terminal and a file can show. A value; one thread.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/assert.h"
#include "sight/commands/figures.h"

namespace outcore::cli {

enum class Look : uint8_t { kPlain, kBold, kDim, kReverse, kGood, kWarn, kBad };

struct Span {
  std::string text;
  Look look = Look::kPlain;
};
using Line = std::vector<Span>;

std::string text_of(const Line& line);  // without blanks at its end

struct Cell {
  std::string text;
  Look look = Look::kPlain;
  std::optional<double> filled = std::nullopt;  // of its width: shown in reverse, as a bar
};

// A column of a table of T.
template <typename T>
struct Column {
  enum class Side : uint8_t { kRight, kLeft, kEnd };  // kEnd: left, and its end is kept when cut
  const char* key;                                    // as --sort has it
  const char* title;                                  // at most as wide as the column
  size_t width;
  unsigned rank;  // the lowest are shown first
  Side side;
  std::function<Cell(const T&, size_t width, const Glyphs&)> cell;
  std::function<double(const T&)> value;      // to sort by; or:
  std::function<std::string(const T&)> text;  // to sort by
  size_t width_max = 0;  // what is left over goes to columns that may be wider; 0: they may not
};

// Which columns are shown, and how wide.
struct Fitted {
  size_t index, width;
};
struct Wanted {
  size_t width, width_max;
  unsigned rank;
};
std::vector<Fitted> fit_columns(const std::vector<Wanted>& columns, size_t width);
// A cell's spans, exactly that wide.
void add_cell(const Cell& cell, size_t width, bool is_right, bool keeps_end, const Glyphs& glyphs,
              Line* line);

template <typename T>
class Table {
 public:
  Table(const std::vector<Column<T>>& columns, size_t width, const Glyphs& glyphs)
      : columns_(columns), glyphs_(glyphs) {
    std::vector<Wanted> wanted;
    for (const Column<T>& column : columns_) {
      CLI_CHECK(column.cell && std::string_view(column.title).size() <= column.width);
      CLI_CHECK(column.width_max == 0 || column.width_max >= column.width);
      wanted.push_back({column.width, column.width_max, column.rank});
    }
    fitted_ = fit_columns(wanted, width);
  }

  // The column that is sorted by is marked.
  Line header(std::string_view sorted_by) const {
    Line line;
    for (const Fitted& at : fitted_) {
      const Column<T>& column = columns_[at.index];
      if (!line.empty()) line.push_back({" ", Look::kReverse});
      const Look look = sorted_by == column.key ? Look::kBold : Look::kReverse;
      add_cell({column.title, look}, at.width, column.side == Column<T>::Side::kRight, false,
               glyphs_, &line);
    }
    return line;
  }
  Line row(const T& of) const {
    Line line;
    for (const Fitted& at : fitted_) {
      const Column<T>& column = columns_[at.index];
      if (!line.empty()) line.push_back({" "});
      add_cell(column.cell(of, at.width, glyphs_), at.width, column.side == Column<T>::Side::kRight,
               column.side == Column<T>::Side::kEnd, glyphs_, &line);
    }
    return line;
  }
  // The next column that is shown, after the one with that key.
  std::string next_key(std::string_view key) const {
    for (size_t i = 0; i < fitted_.size(); ++i)
      if (columns_[fitted_[i].index].key == key)
        return columns_[fitted_[(i + 1) % fitted_.size()].index].key;
    return fitted_.empty() ? std::string(key) : columns_[fitted_.front().index].key;
  }

 private:
  const std::vector<Column<T>>& columns_;
  const Glyphs& glyphs_;
  std::vector<Fitted> fitted_;
};

// Numbers from the highest, texts from the first; or the other way round.
template <typename T>
void sort_by(const std::vector<Column<T>>& columns, std::string_view key, bool is_reversed,
             std::vector<const T*>* rows) {
  for (const Column<T>& column : columns) {
    if (column.key != key) continue;
    CLI_CHECK(column.text || column.value);
    std::stable_sort(rows->begin(), rows->end(), [&](const T* a, const T* b) {
      if (is_reversed) std::swap(a, b);
      return column.text ? column.text(*a) < column.text(*b) : column.value(*a) > column.value(*b);
    });
  }
}

template <typename T>
std::vector<std::string> keys_of(const std::vector<Column<T>>& columns) {
  std::vector<std::string> keys;
  for (const Column<T>& column : columns) keys.push_back(column.key);
  return keys;
}

}  // namespace outcore::cli
