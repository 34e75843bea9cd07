#include "sight/commands/plain_page.h"

#include <algorithm>
#include <cstdint>

#include "cli/assert.h"
#include "cli/text.h"
#include "outcore/metrics.h"
#include "sight/commands/change.h"
#include "sight/commands/kept_records.h"
#include "sight/commands/verdict.h"

namespace outcore::cli {
namespace {

constexpr size_t kPlainRunsMax = 8, kShownBytesMax = 400;

std::string element(const std::string& name, const std::string& text) {
  CLI_CHECK(!name.empty());
  return "<" + name + ">" + html_text(text) + "</" + name.substr(0, name.find(' ')) + ">\n";
}

std::string figure(const std::string& name, const std::string& value) {
  return "<div>" + element("dt", name) + element("dd", value) + "</div>\n";
}

std::string seconds_text(uint64_t ns) { return format_seconds(static_cast<double>(ns) * 1e-9); }

// Of a buffer, which other processes have, too, its limit counts.
std::string memory_figures(const Json& record) {
  const Json& gauges = record["gauges"];
  const Json& buffer = record["buffer"];
  const auto bytes = [&](const char* of_buffer, const char* own) {
    return format_bytes(buffer.value(of_buffer, gauges.value(own, uint64_t{0})));
  };
  const bool is_shared = buffer.is_object();
  return figure(is_shared ? "buffer, for all its processes" : "budget",
                bytes("limit_bytes", "budget_bytes")) +
         figure("at most in use", bytes("used_bytes_max", "used_bytes_max"));
}

std::string figures_of(const Json& record) {
  const Counters c = counters_of(record["counters"]);
  const LatencyHistogram latency = latency_of(record["latency"]);
  uint64_t touched_bytes = 0;
  for (const Json& file : record["files"])
    touched_bytes += file.value("touched_bytes", uint64_t{0});
  const auto count = [](uint64_t n) { return format_count(static_cast<double>(n)); };
  std::string text =
      figure("recorded for", format_seconds(record["program"].value("seconds", 0.0)));
  text += figure("waiting for pages, of all threads", seconds_text(waited_ns(c)));
  text += figure("faults", count(c.faults));
  if (c.call_waits != 0) text += figure("pages that calls waited for", count(c.call_waits));
  if (waits(c) != 0) {
    const std::string of = c.call_waits != 0 ? " of the waits took" : " of them took";
    text += figure("half" + of + " less than", seconds_text(latency.percentile_ns(0.5)));
    text += figure("99 %" + of + " less than", seconds_text(latency.percentile_ns(0.99)));
  }
  text += figure("pages brought in", count(brought_in(c)));
  text += figure("of them had been there before", count(c.refaults));
  text += figure("read", format_bytes(c.read_bytes));
  if (touched_bytes != 0) text += figure("of different pages", format_bytes(touched_bytes));
  text += figure("written", format_bytes(c.written_bytes));
  return "<dl>\n" + text + memory_figures(record) + "</dl>\n";
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
  std::stable_sort(longest_first.begin(), longest_first.end(), [](const Json* a, const Json* b) {
    return waited_ns_of(*a) > waited_ns_of(*b);
  });
  std::string text;
  for (size_t i = 0; i < std::min(kPlainRunsMax, longest_first.size()); ++i)
    text += run_text(*longest_first[i]);
  if (longest_first.size() > kPlainRunsMax)
    text += element(
        "p", std::to_string(longest_first.size() - kPlainRunsMax) + " more processes waited less.");
  return text;
}

}  // namespace outcore::cli
