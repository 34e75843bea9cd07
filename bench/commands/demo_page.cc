#include "bench/commands/demo_page.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <sstream>

#include "cli/text.h"
#include "outcore/runtime.h"

namespace outcore::cli {
namespace {

using bench::RunResult;
using bench::Series;

constexpr const char* kStyle = R"(
:root { --ground: #fff; --ink: #1c2326; --soft: #5d6b70; --line: #dde4e5; --card: #f5f8f8;
  --outcore: #1b7f5c; --other: #b9772c; --stopped: #9aa5a8; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ground: #14191b; --ink: #e6ecec; --soft: #9fb0b3;
  --line: #2d373a; --card: #1c2326; --outcore: #4cc397; --other: #dba458; --stopped: #5d6b70; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 3rem; max-width: 56rem; background: var(--ground);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; }
h2 { font-size: 1.15rem; margin: 0 0 .2rem; }
p { margin: .2rem 0 .8rem; } .soft { color: var(--soft); font-size: .92rem; }
section { border-top: 1px solid var(--line); padding: 1.4rem 0 .6rem; }
.verdict { font-weight: 600; }
.bars { display: grid; grid-template-columns: max-content 1fr; gap: .4rem .9rem;
  align-items: center; margin: .8rem 0 1rem; }
.bar { display: flex; align-items: center; gap: .5rem; white-space: nowrap; }
.bar i { height: 1.5rem; min-width: 3px; border-radius: 3px; background: var(--other); }
.bar.outcore i { background: var(--outcore); }
.bar.stopped i { background: repeating-linear-gradient(45deg, var(--stopped) 0 6px,
  transparent 6px 10px); }
.scroll { overflow-x: auto; padding-bottom: .8rem; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { color: var(--soft); font-weight: 500; }
ol { padding: 0; list-style: none; margin: .6rem 0 0; }
li { margin: 0 0 .9rem; } code, pre { font: .92rem/1.5 ui-monospace, monospace; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 5px; margin: 0 0 .2rem;
  padding: .5rem .8rem; overflow-x: auto; }
@media (max-width: 34rem) { .bars { grid-template-columns: 1fr; gap: .1rem; }
  .bar { margin-bottom: .5rem; } table { font-size: .78rem; } td, th { padding-right: .5rem; } }
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// What a run that was stopped shows is the time after which it was.
double seconds_of(const Series& series) {
  return series.is_stopped() ? series.runs.front().seconds : series.median_seconds();
}

void print_bars(std::ostream& out, const DemoPart& part) {
  constexpr double kWidestPercent = 78;  // beside it stands the time
  double longest = 0;
  for (const Series& series : part.series) longest = std::max(longest, seconds_of(series));
  out << "<div class=\"bars\">\n";
  for (const Series& series : part.series) {
    const double seconds = seconds_of(series);
    const double width = longest > 0 ? seconds / longest * kWidestPercent : 0;
    const bool is_stopped = series.is_stopped();
    const char* const kind =
        is_stopped ? " stopped" : (series.memory == "outcore" ? " outcore" : "");
    out << "<span>" << escaped(name_for_people(series.memory)) << "</span><span class=\"bar" << kind
        << "\"><i style=\"width:" << format("%.1f", width) << "%\"></i>"
        << escaped(is_stopped ? series.runs.front().stop_reason : format_seconds(seconds))
        << "</span>\n";
  }
  out << "</div>\n";
}

void print_numbers(std::ostream& out, const DemoPart& part) {
  out << "<div class=\"scroll\"><table><tr><th></th><th>fills</th><th>read</th><th>written</th>"
         "<th>peak memory</th><th>answer</th></tr>\n";
  for (const Series& series : part.series) {
    if (series.is_stopped()) continue;
    const RunResult& run = series.median_run();
    out << "<tr><td>" << escaped(name_for_people(series.memory)) << "</td><td>"
        << format_count(static_cast<double>(run.fills)) << "</td><td>"
        << format_bytes(run.read_bytes) << "</td><td>" << format_bytes(run.written_bytes)
        << "</td><td>" << (run.peak_bytes != 0 ? format_bytes(run.peak_bytes) : "-") << "</td><td>"
        << (run.is_checked ? "verified" : "not verified") << "</td></tr>\n";
  }
  out << "</table></div>\n";
}

}  // namespace

std::string name_for_people(const std::string& memory) {
  if (memory == "outcore") return "Outcore";
  if (memory == "mmap") return "mmap, the kernel's readahead";
  if (memory == "mmap-random") return "mmap, MADV_RANDOM";
  return memory;
}

std::string DemoPage::to_html() const {
  std::ostringstream out;
  out << "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<title>Outcore on this machine</title>\n<style>"
      << kStyle << "</style>\n<body>\n<h1>Data four times larger than its memory</h1>\n<p>"
      << escaped(machine) << "</p>\n";
  for (const DemoPart& part : parts) {
    out << "<section>\n<h2>" << escaped(part.title) << "</h2>\n<p class=\"soft\">"
        << escaped(part.text) << "</p>\n<p class=\"verdict\">" << escaped(part.verdict) << "</p>\n";
    print_bars(out, part);
    print_numbers(out, part);
    out << "</section>\n";
  }
  out << "<section>\n<h2>Try next</h2>\n<ol>\n";
  for (const DemoCommand& command : next)
    out << "<li><pre>" << escaped(command.line) << "</pre><span class=\"soft\">"
        << escaped(command.why) << "</span></li>\n";
  out << "</ol>\n</section>\n<section class=\"soft\">\n<p>Shorter bars are better. Fills: times a "
         "page had to be brought in; of mmap major faults, each of which may read many pages "
         "ahead. "
         "Read, written: bytes from and to the device. Peak memory: of the whole control group, "
         "the "
         "page cache and the program's own arrays included. One run each, with default settings; "
         "figures move by 10 to 20 % from run to run on a virtual machine. Outcore "
      << escaped(version()) << ".</p>\n</section>\n</body>\n</html>\n";
  return out.str();
}

Status DemoPage::save(const std::string& path) const {
  const std::string remedy = "name another file with --page";
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return failure(errno, "write " + path, remedy);
  const std::string text = to_html();
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int why = is_written ? 0 : errno;
  if (std::fclose(file) != 0 && why == 0) why = errno;
  return why == 0 ? Status{} : Status(failure(why, "write " + path, remedy));
}

}  // namespace outcore::cli
