// Pages: what `outcore top` shows: all processes; the files of one; one file. They are made of what
// a Watch has seen, for a width, and drawn by a terminal or printed.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "sight/commands/table.h"
#include "sight/commands/watch.h"

namespace outcore::cli {

// What a row stands for.
struct RowKey {
  pid_t pid = 0;
  std::string uri;  // empty: the process
  size_t occurrence = 0;
  bool operator==(const RowKey&) const = default;
};

struct Page {
  std::vector<Line> head;    // stays on top
  std::vector<Line> rows;    // as many as there is room for
  std::vector<RowKey> keys;  // of the rows, or none
  std::vector<Line> tail;    // stays below
  std::string next_sort;     // the column after the one that is sorted by
};

struct PageStyle {
  size_t width = 80;
  Glyphs glyphs;
  std::string sort;  // the key of a column
  bool is_reversed = false;
  std::string filter;  // of commands or files; empty: all
  std::chrono::milliseconds interval{1000};
  bool is_paused = false;
  bool has_history = true;  // one look has none to show
};

Page list_page(const Watch& watch, const PageStyle& style);
// `selected`: the row of which more is shown below.
Page process_page(const ProcessView& process, const PageStyle& style, const RowKey& selected);
Page store_page(const ProcessView& process, const StoreView& store, const PageStyle& style);
Page help_page(const PageStyle& style);

}  // namespace outcore::cli
