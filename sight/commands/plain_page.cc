#include "sight/commands/plain_page.h"

#include <algorithm>
#include <cstdint>

#include "cli/text.h"
#include "outcore/metrics.h"
#include "sight/commands/verdict.h"

namespace outcore::cli {
namespace {

constexpr size_t kPlainRunsMax = 8, kShownBytesMax = 400;

std::string element(const std::string& name, const std::string& text) {
  return "<" + name + ">" + html_text(text) + "</" + name.substr(0, name.find(' ')) + ">\n";
}

std::string figure(const std::string& name, const std::string& value) {
  return "<div>" + element("dt", name) + element("dd", value) + "</div>\n";
}

std::string seconds_text(uint64_t ns) { return format_seconds(static_cast<double>(ns) * 1e-9); }

std::string figures_of(const Json& record) {
  const Counters c = counters_of(record["counters"]);
  const LatencyHistogram latency = latency_of(record["latency"]);
  uint64_t touched_bytes = 0;
  for (const Json& file : record["files"])
    touched_bytes += file.value("touched_bytes", uint64_t{0});
  const auto count = [](uint64_t n) { return format_count(static_cast<double>(n)); };
  std::string text =
      figure("recorded for", format_seconds(record["program"].value("seconds", 0.0)));
  text += figure("waiting for pages, of all threads", seconds_text(c.fault_ns));
  text += figure("faults", count(c.faults));
  if (c.faults != 0) {
    text += figure("half of them took less than", seconds_text(latency.percentile_ns(0.5)));
    text += figure("99 % of them took less than", seconds_text(latency.percentile_ns(0.99)));
  }
  text += figure("pages brought in", count(brought_in(c)));
  text += figure("of them had been there before", count(c.refaults));
  text += figure("read", format_bytes(c.read_bytes));
  if (touched_bytes != 0) text += figure("of different pages", format_bytes(touched_bytes));
  text += figure("written", format_bytes(c.written_bytes));
  const Json& gauges = record["gauges"];
  text += figure("budget", format_bytes(gauges.value("budget_bytes", uint64_t{0})));
  text += figure("at most in use", format_bytes(gauges.value("used_bytes_max", uint64_t{0})));
  return "<dl>\n" + text + "</dl>\n";
}

std::string run_text(const Json& record) {
  const Json& verdict = record["verdict"];
  std::string text = element("h1", verdict.value("headline", ""));
  const std::string command = one_line(record["program"].value("command", ""));
  text += element("p class=\"mono\"", beginning_of(command, kShownBytesMax));
  for (const Json& sentence : verdict["sentences"])
    text += element("p", sentence.as<std::string>().value_or(""));
  for (const Json& next : verdict["next"])
    text += element("p class=\"mono\"", "next: " + next.as<std::string>().value_or(""));
  return text + figures_of(record);
}

}  // namespace

std::string html_text(const std::string& text) {
  std::string html;
  for (const char c : text) {
    if (c == '<')
      html += "&lt;";
    else if (c == '&')
      html += "&amp;";
    else
      html += c;
  }
  return html;
}

std::string plain_page(const std::vector<Json>& records) {
  std::vector<const Json*> longest_first;
  for (const Json& record : records) longest_first.push_back(&record);
  const auto waited = [](const Json* r) { return (*r)["counters"].value("fault_ns", 0.0); };
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](const Json* a, const Json* b) { return waited(a) > waited(b); });
  std::string text;
  for (size_t i = 0; i < std::min(kPlainRunsMax, longest_first.size()); ++i)
    text += run_text(*longest_first[i]);
  if (longest_first.size() > kPlainRunsMax)
    text += element(
        "p", std::to_string(longest_first.size() - kPlainRunsMax) + " more processes waited less.");
  return text;
}

}  // namespace outcore::cli
