#include "sight/commands/pages.h"

#include <algorithm>
#include <ctime>
#include <string_view>

#include "cli/assert.h"
#include "cli/text.h"
#include "sight/commands/columns.h"
#include "sight/commands/left_file.h"

namespace outcore::cli {
namespace {

std::string bytes_text(uint64_t bytes) { return short_bytes(static_cast<double>(bytes)); }
std::string byte_rate(const Change& change, uint64_t bytes) {
  return change.is_known() ? short_bytes(change.a_second(bytes)) + "/s" : "-";
}
std::string count_rate(const Change& change, uint64_t count) {
  return change.is_known() ? short_count(change.a_second(count)) + "/s" : "-";
}
std::string counted(size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}
std::string interval_text(const PageStyle& style) {
  return format("%g s", static_cast<double>(style.interval.count()) / 1000);
}

std::string clock_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  return format("%02d:%02d:%02d", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// A line with its end at the right edge.
Line between(const std::string& left, const std::string& right, const PageStyle& style) {
  const size_t right_width = std::min(columns_of(right), style.width);
  const size_t left_width = style.width - right_width;
  return {{fit(left, left_width, style.glyphs), Look::kBold}, {right, Look::kDim}};
}

std::string state_text(const PageStyle& style) {
  return (style.is_paused ? "  paused " : "  every " + interval_text(style) + " ") + clock_text();
}

bool is_wanted(const std::string& text, const PageStyle& style) {
  return style.filter.empty() || text.find(style.filter) != std::string::npos;
}

Line no_hit_line(const char* what, const PageStyle& style) {
  return {{"No " + std::string(what) + " has '" + style.glyphs.shown(style.filter) +
               "': Esc shows all.",
           Look::kDim}};
}

// Programs that cannot be looked at, as their library is another.
std::vector<Line> other_lines(const Watch& watch, const PageStyle& style) {
  std::vector<Line> lines;
  for (const OtherLibrary& other : watch.others())
    lines.push_back({{fit("process " + std::to_string(other.process) + " has outcore " +
                              style.glyphs.shown(other.version) +
                              " with other counters: look at it by its own command",
                          style.width, style.glyphs),
                      Look::kWarn}});
  return lines;
}

Line buffer_line(const BufferView& buffer, const PageStyle& style) {
  const double share = share_of(buffer.now.used_bytes, buffer.now.limit_bytes);
  const bool is_wide = style.width >= 100;
  std::string tail =
      format(" %5s of %5s %4s  %s, %s", bytes_text(buffer.now.used_bytes).c_str(),
             bytes_text(buffer.now.limit_bytes).c_str(), short_percent(share).c_str(),
             counted(buffer.now.members.size(), "process", "processes").c_str(),
             counted(buffer.now.files, "file", "files").c_str());
  if (is_wide)
    tail += ", " + short_count(buffer.fills_a_second) + " fills/s, " +
            short_count(buffer.evictions_a_second) + " evictions/s";
  return {{"buffer "},
          {fit(style.glyphs.shown(buffer.now.name), 14, style.glyphs), Look::kBold},
          {" " + bar(share, is_wide ? 20 : 10, style.glyphs)},
          {tail}};
}

// Such as "stalled 98%  p50 262us", its figures bold.
struct Fact {
  const char* name;
  std::string text;
  Look look = Look::kBold;
};
Line facts_line(const std::vector<Fact>& facts) {
  Line line;
  for (const Fact& fact : facts) {
    if (fact.text.empty()) continue;
    line.push_back({(line.empty() ? "" : "  ") + std::string(fact.name) + " ", Look::kPlain});
    line.push_back({fact.text, fact.look});
  }
  return line;
}

Line sum_line(const Watch& watch) {
  Change all;
  for (const ProcessView& process : watch.processes()) all.add(process.change);
  const Counters& c = all.counters;
  return facts_line({{"stalled", all.is_stall_known() ? short_percent(all.stalled()) : "-",
                      all.stalled() >= 0.1 ? look_of_stalled(all.stalled()) : Look::kBold},
                     {"fills", count_rate(all, all.filled())},
                     {"read", byte_rate(all, c.read_bytes)},
                     {"written", byte_rate(all, c.written_bytes)},
                     {"again", all.is_known() ? short_percent(all.refault_share()) : "-"}});
}

std::vector<Line> process_head(const ProcessView& process, const PageStyle& style) {
  CLI_CHECK(!process.runtimes.empty());
  const PublishedRuntime& first = process.runtimes.front().now;
  const Change& change = process.change;
  const Counters& c = change.counters;
  const double age = static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                             std::chrono::system_clock::now().time_since_epoch())
                                             .count()) /
                         1e9 -
                     static_cast<double>(first.started_ns) / 1e9;
  const auto latency = [&](double share) {
    return short_time(change.latency.percentile_ns(share));
  };
  std::vector<Line> head;
  head.push_back(between(
      format("%d ", static_cast<int>(process.pid)) + style.glyphs.shown(process.facts.command),
      state_text(style), style));
  const double used = share_of(process.used_bytes, process.budget_bytes);
  head.push_back(
      {{"budget "},
       {bar(used, style.width >= 100 ? 30 : 14, style.glyphs)},
       {" " + bytes_text(process.used_bytes) + " of " + bytes_text(process.budget_bytes),
        Look::kBold},
       {process.runtimes.front().buffer.empty()
            ? "  from " + style.glyphs.shown(first.budget_source)
            : ", for all its processes"},
       {first.shared_buffer.empty() ? "" : "  buffer " + style.glyphs.shown(first.shared_buffer)}});
  head.push_back(
      facts_line({{"stalled", process.is_stall_known() ? short_percent(change.stalled()) : "-",
                   change.stalled() >= 0.1 ? look_of_stalled(change.stalled()) : Look::kBold},
                  {"faults", count_rate(change, c.faults)},
                  {"calls", c.call_waits == 0 ? "" : count_rate(change, c.call_waits)},
                  {"p50", latency(0.5)},
                  {"p99", latency(0.99)},
                  {"again", change.is_known() ? short_percent(change.refault_share()) : "-"},
                  {"cpu", process.cpu_share < 0 ? "-" : short_percent(process.cpu_share)},
                  {"rss", bytes_text(process.facts.rss_bytes)}}));
  head.push_back(facts_line(
      {{"read", byte_rate(change, c.read_bytes)},
       {"written", byte_rate(change, c.written_bytes)},
       {"dirty", process.dirty_bytes ? bytes_text(*process.dirty_bytes) : ""},
       // Another process takes out what leaves a buffer.
       {"evicted", process.runtimes.front().buffer.empty() ? count_rate(change, c.evictions) : ""},
       {"read in all", bytes_text(process.counters.read_bytes)},
       {"amplification", short_ratio(process.amplification.value())}}));
  head.push_back(facts_line({{"policy", style.glyphs.shown(first.policy)},
                             {"now", style.glyphs.shown(first.policy_now)},
                             {"user", style.glyphs.shown(process.facts.user)},
                             {"since", long_time(age)},
                             {"outcore", style.glyphs.shown(first.version)}}));
  return head;
}

// What of its files is the kernel's, and why: not what has been taken again since.
std::vector<Line> left_lines(const ProcessView& process, const PageStyle& style) {
  std::vector<std::string> taken;
  process.for_each_store([&](const StoreView& store) { taken.push_back(name_of(store)); });
  std::vector<Line> lines;
  for (const RuntimeView& runtime : process.runtimes)
    for (const LeftFile& file : runtime.now.left_files) {
      if (std::any_of(taken.begin(), taken.end(),
                      [&](const std::string& path) { return is_at(file, path); }))
        continue;
      lines.push_back({{cut_end(std::string(how_left(file)) + ": " + style.glyphs.shown(file.path) +
                                    ": " + style.glyphs.shown(why_left(file)),
                                style.width, style.glyphs),
                        Look::kWarn}});
    }
  return lines;
}

}  // namespace

Page list_page(const Watch& watch, const PageStyle& style) {
  Page page;
  std::string title = "outcore top  " + counted(watch.processes().size(), "process", "processes");
  if (!watch.buffers().empty())
    title += ", " + counted(watch.buffers().size(), "buffer", "buffers");
  if (!style.filter.empty()) title += ", with '" + style.glyphs.shown(style.filter) + "'";
  page.head.push_back(between(title, state_text(style), style));
  const std::vector<Line> others = other_lines(watch, style);
  page.head.insert(page.head.end(), others.begin(), others.end());
  if (watch.processes().empty()) {
    page.head.push_back({});
    page.head.push_back({{"No process with a runtime of Outcore is running that you may see."}});
    page.head.push_back({{"Start one:  outcore run --budget 4G -- PROGRAM ..."}});
    return page;
  }
  page.head.push_back(sum_line(watch));
  for (const BufferView& buffer : watch.buffers()) page.head.push_back(buffer_line(buffer, style));
  page.head.push_back({});
  std::vector<Column<ProcessView>> columns = process_columns();
  if (!style.has_history)
    std::erase_if(columns, [](const auto& column) { return column.key == std::string("history"); });
  const Table<ProcessView> table(columns, style.width, style.glyphs);
  page.head.push_back(table.header(style.sort));
  page.next_sort = table.next_key(style.sort);
  std::vector<const ProcessView*> rows;
  for (const ProcessView& process : watch.processes())
    if (is_wanted(process.facts.command, style) ||
        is_wanted(std::to_string(process.pid) + " " + process.facts.user, style))
      rows.push_back(&process);
  sort_by(process_columns(), style.sort, style.is_reversed, &rows);
  for (const ProcessView* process : rows) {
    page.rows.push_back(table.row(*process));
    page.keys.push_back({process->pid, {}, 0});
  }
  CLI_CHECK(page.keys.size() == page.rows.size());
  if (rows.empty()) page.rows.push_back(no_hit_line("process", style));
  return page;
}

Page process_page(const ProcessView& process, const PageStyle& style, const RowKey& selected) {
  Page page;
  page.head = process_head(process, style);
  page.head.push_back(
      {{"stalled "},
       {sparkline(process.stalled, std::min(kHistoryMax, style.width > 12 ? style.width - 12 : 0),
                  0.25, style.glyphs),
        Look::kDim}});
  const Table<StoreView> table(store_columns(), style.width, style.glyphs);
  page.head.push_back({});
  page.head.push_back(table.header(style.sort));
  page.next_sort = table.next_key(style.sort);
  std::vector<const StoreView*> rows;
  process.for_each_store([&](const StoreView& store) {
    if (is_wanted(store.now.uri, style)) rows.push_back(&store);
  });
  sort_by(store_columns(), style.sort, style.is_reversed, &rows);
  for (const StoreView* store : rows) {
    page.rows.push_back(table.row(*store));
    page.keys.push_back({process.pid, store->now.uri, store->occurrence});
    if (page.keys.back() != selected) continue;
    const std::string fetches = store->now.fetches.to_text(store->now.page_bytes);
    page.tail.push_back(
        {{cut_start(style.glyphs.shown(name_of(*store)), style.width, style.glyphs), Look::kBold}});
    page.tail.push_back(
        {{store->now.access + ", " + store->now.delivery + ", " + store->now.frames + " frames" +
          (fetches.empty() ? "" : "; a miss brings in " + fetches)}});
    if (store->now.is_degraded)
      page.tail.push_back(
          {{"degraded: a write-back failed and has not succeeded since", Look::kBad}});
  }
  CLI_CHECK(page.keys.size() == page.rows.size() && page.keys.size() == rows.size());
  const std::vector<Line> left = left_lines(process, style);
  if (rows.empty() && !style.filter.empty())
    page.rows.push_back(no_hit_line("file", style));
  else if (rows.empty() && left.empty())
    page.rows.push_back({{"It has mapped nothing just now.", Look::kDim}});
  auto& place = rows.empty() ? page.rows : page.tail;
  place.insert(place.end(), left.begin(), left.end());
  return page;
}

Page help_page(const PageStyle& style) {
  static constexpr const char* kText[] = {
      "STALL   time that threads waited for pages: 100% is one thread that only waits",
      "FILL/s  pages brought in          AGAIN  those that had been here before:",
      "READ/s  bytes read from stores           a larger budget would have kept them",
      "WRIT/s  bytes written back        P50 P99  of these waits, in the interval",
      "AMPL    bytes read / bytes of different pages that came in, since the start",
      "HERE/SIZE  in memory of the whole         !  degraded: a write-back failed",
      "DIRTY   written, and in no store yet",
      "",
      "Up Down j k   select              Enter   open a process, then a file",
      "Esc q         back, or quit       /       show only what has this text",
      "s S           sort by the next column; the other way round",
      "p Space       pause               + -     look less often, more often",
      "r             resize the buffer that the process shares",
      "w e           warm or evict the selected file in that process",
  };
  Page page;
  page.head.push_back(between("outcore top: figures and keys", "any key goes back", style));
  page.head.push_back({});
  for (const char* text : kText) page.rows.push_back({{text}});
  return page;
}

}  // namespace outcore::cli
