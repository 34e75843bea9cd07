#include "sight/commands/columns.h"

#include <initializer_list>

#include "outcore/store_kind.h"

namespace outcore::cli {
namespace {

using ProcessColumn = Column<ProcessView>;
using StoreColumn = Column<StoreView>;

// A figure of the interval: nothing is known before the second look.
template <typename T>
std::function<Cell(const T&, size_t, const Glyphs&)> rate(std::string (*text)(double),
                                                          double (*number)(const Change&)) {
  return [=](const T& of, size_t, const Glyphs&) {
    return Cell{of.change.is_known() ? text(number(of.change)) : "-"};
  };
}

double fills(const Change& c) { return c.a_second(c.filled()); }
double reads(const Change& c) { return c.a_second(c.counters.read_bytes); }
double writes(const Change& c) { return c.a_second(c.counters.written_bytes); }
double refaults(const Change& c) { return c.refault_share(); }
double p50(const Change& c) { return static_cast<double>(c.latency.percentile_ns(0.5)); }
double p99(const Change& c) { return static_cast<double>(c.latency.percentile_ns(0.99)); }
std::string time_text(double ns) { return short_time(static_cast<uint64_t>(ns)); }

template <typename T, double (*kNumber)(const Change&)>
double value(const T& of) {
  return kNumber(of.change);
}

bool is_stall_known(const StoreView& of) { return of.change.is_stall_known(); }
bool is_stall_known(const ProcessView& of) { return of.is_stall_known(); }

template <typename T>
Cell stalled_cell(const T& of, size_t, const Glyphs&) {
  const double stalled = of.change.stalled();
  return {is_stall_known(of) ? short_percent(stalled) : "-", look_of_stalled(stalled)};
}

template <typename T>
Cell history_cell(const T& of, size_t width, const Glyphs& glyphs) {
  return {sparkline(of.stalled, width, 0.25, glyphs), Look::kDim};
}

Cell budget_cell(const ProcessView& of, size_t, const Glyphs&) {
  return {short_bytes(static_cast<double>(of.used_bytes)) + "/" +
              short_bytes(static_cast<double>(of.budget_bytes)),
          Look::kPlain, share_of(of.used_bytes, of.budget_bytes)};
}

Cell command_cell(const ProcessView& of, size_t, const Glyphs& glyphs) {
  return {(of.degraded != 0 ? "! " : "") + glyphs.shown(short_command(of)),
          of.degraded != 0 ? Look::kBad : Look::kPlain};
}

Cell resident_cell(const StoreView& of, size_t, const Glyphs&) {
  if (of.now.frames == "buffer") return {"in buffer"};
  const double share = share_of(of.now.resident_bytes, of.now.size_bytes);
  return {short_bytes(static_cast<double>(of.now.resident_bytes)) + "/" +
              short_bytes(static_cast<double>(of.now.size_bytes)),
          Look::kPlain, share};
}

Cell store_cell(const StoreView& of, size_t, const Glyphs& glyphs) {
  return {(of.now.is_degraded ? "! " : "") + glyphs.shown(name_of(of)),
          of.now.is_degraded ? Look::kBad : Look::kPlain};
}

double or_zero(const std::optional<double>& number) { return number.value_or(0); }

// Columns of processes, from the left.
std::vector<ProcessColumn> who_columns() {
  using Side = ProcessColumn::Side;
  using P = ProcessView;
  return {
      {"pid",
       "PID",
       7,
       0,
       Side::kRight,
       [](const P& of, size_t, const Glyphs&) { return Cell{std::to_string(of.pid)}; },
       [](const P& of) { return -static_cast<double>(of.pid); },
       {}},
      {"user",
       "USER",
       8,
       13,
       Side::kLeft,
       [](const P& of, size_t, const Glyphs& glyphs) { return Cell{glyphs.shown(of.facts.user)}; },
       {},
       [](const P& of) { return of.facts.user; }},
      {"stalled",
       "STALL",
       5,
       2,
       Side::kRight,
       stalled_cell<P>,
       [](const P& of) { return of.change.stalled(); },
       {}},
      {"budget",
       "USED/BUDGET",
       11,
       4,
       Side::kRight,
       budget_cell,
       [](const P& of) { return static_cast<double>(of.used_bytes); },
       {}},
  };
}

std::vector<ProcessColumn> paging_columns() {
  using Side = ProcessColumn::Side;
  using P = ProcessView;
  return {
      {"fills", "FILL/s", 6, 5, Side::kRight, rate<P>(short_count, fills), value<P, fills>, {}},
      {"read", "READ/s", 6, 3, Side::kRight, rate<P>(short_bytes, reads), value<P, reads>, {}},
      {"write", "WRIT/s", 6, 10, Side::kRight, rate<P>(short_bytes, writes), value<P, writes>, {}},
      {"p99", "P99", 5, 6, Side::kRight, rate<P>(time_text, p99), value<P, p99>, {}},
      {"refaults",
       "AGAIN",
       5,
       7,
       Side::kRight,
       rate<P>(short_percent, refaults),
       value<P, refaults>,
       {}},
      {"amplification",
       "AMPL",
       5,
       9,
       Side::kRight,
       [](const P& of, size_t, const Glyphs&) {
         return Cell{short_ratio(of.amplification.value())};
       },
       [](const P& of) { return or_zero(of.amplification.value()); },
       {}},
  };
}

std::vector<ProcessColumn> process_end_columns() {
  using Side = ProcessColumn::Side;
  using P = ProcessView;
  return {
      {"cpu",
       "CPU",
       5,
       11,
       Side::kRight,
       [](const P& of, size_t, const Glyphs&) {
         return Cell{of.cpu_share < 0 ? "-" : short_percent(of.cpu_share)};
       },
       [](const P& of) { return of.cpu_share; },
       {}},
      {"rss",
       "RSS",
       5,
       12,
       Side::kRight,
       [](const P& of, size_t, const Glyphs&) {
         return Cell{short_bytes(static_cast<double>(of.facts.rss_bytes))};
       },
       [](const P& of) { return static_cast<double>(of.facts.rss_bytes); },
       {}},
      {"history",
       "STALLED",
       8,
       8,
       Side::kLeft,
       history_cell<P>,
       [](const P& of) { return of.change.stalled(); },
       {},
       kHistoryMax},
      {"command",
       "COMMAND",
       12,
       1,
       Side::kLeft,
       command_cell,
       {},
       [](const P& of) { return of.facts.command; },
       4096},
  };
}

// Columns of files, from the left.
std::vector<StoreColumn> file_columns() {
  using Side = StoreColumn::Side;
  using S = StoreView;
  return {
      {"file",
       "FILE",
       16,
       0,
       Side::kEnd,
       store_cell,
       {},
       [](const S& of) { return name_of(of); },
       80},
      {"resident",
       "HERE/SIZE",
       11,
       1,
       Side::kRight,
       resident_cell,
       [](const S& of) { return static_cast<double>(of.now.resident_bytes); },
       {}},
      {"stalled",
       "STALL",
       5,
       2,
       Side::kRight,
       stalled_cell<S>,
       [](const S& of) { return of.change.stalled(); },
       {}},
  };
}

std::vector<StoreColumn> file_paging_columns() {
  using Side = StoreColumn::Side;
  using S = StoreView;
  return {
      {"fills", "FILL/s", 6, 4, Side::kRight, rate<S>(short_count, fills), value<S, fills>, {}},
      {"read", "READ/s", 6, 3, Side::kRight, rate<S>(short_bytes, reads), value<S, reads>, {}},
      {"write", "WRIT/s", 6, 8, Side::kRight, rate<S>(short_bytes, writes), value<S, writes>, {}},
      {"dirty",
       "DIRTY",
       6,
       9,
       Side::kRight,
       [](const S& of, size_t, const Glyphs&) {
         return Cell{of.dirty_bytes ? short_bytes(static_cast<double>(*of.dirty_bytes)) : "-"};
       },
       [](const S& of) { return static_cast<double>(of.dirty_bytes.value_or(0)); },
       {}},
      {"p50", "P50", 5, 10, Side::kRight, rate<S>(time_text, p50), value<S, p50>, {}},
      {"p99", "P99", 5, 5, Side::kRight, rate<S>(time_text, p99), value<S, p99>, {}},
      {"refaults",
       "AGAIN",
       5,
       6,
       Side::kRight,
       rate<S>(short_percent, refaults),
       value<S, refaults>,
       {}},
      {"amplification",
       "AMPL",
       5,
       7,
       Side::kRight,
       [](const S& of, size_t, const Glyphs&) { return Cell{short_ratio(amplification_of(of))}; },
       [](const S& of) { return or_zero(amplification_of(of)); },
       {}},
  };
}

std::vector<StoreColumn> file_end_columns() {
  using Side = StoreColumn::Side;
  using S = StoreView;
  return {
      {"fetch",
       "A MISS BRINGS IN",
       28,
       11,
       Side::kLeft,
       [](const S& of, size_t, const Glyphs& glyphs) {
         return Cell{glyphs.shown(of.now.fetches.to_text(of.now.page_bytes))};
       },
       {},
       [](const S& of) { return of.now.fetches.to_text(of.now.page_bytes); },
       80},
      {"history",
       "STALLED",
       8,
       12,
       Side::kLeft,
       history_cell<S>,
       [](const S& of) { return of.change.stalled(); },
       {},
       kHistoryMax},
  };
}

template <typename T>
std::vector<Column<T>> joined(std::vector<Column<T>> all,
                              std::initializer_list<std::vector<Column<T>>> others) {
  for (const auto& more : others) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

Look look_of_stalled(double stalled) {
  return stalled >= 0.5 ? Look::kBad : stalled >= 0.1 ? Look::kWarn : Look::kPlain;
}

std::string short_command(const ProcessView& process) {
  const std::string& all = process.facts.command;
  const size_t name = all.substr(0, all.find(' ')).rfind('/') + 1;  // 0: no folder
  return all.substr(name);
}

std::string name_of(const StoreView& store) { return without_file_scheme(store.now.uri); }

std::optional<double> amplification_of(const StoreView& store) {
  Amplification amplification;
  amplification.add(store.now);
  return amplification.value();
}

double share_of(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

const std::vector<ProcessColumn>& process_columns() {
  static const std::vector<ProcessColumn> columns =
      joined(who_columns(), {paging_columns(), process_end_columns()});
  return columns;
}

const std::vector<StoreColumn>& store_columns() {
  static const std::vector<StoreColumn> columns =
      joined(file_columns(), {file_paging_columns(), file_end_columns()});
  return columns;
}

}  // namespace outcore::cli
