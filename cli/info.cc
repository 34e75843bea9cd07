// outcore info: what the kernel and this process offer, what is missing, and the remedy.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/json.h"
#include "cli/text.h"
#include "outcore/policy.h"
#include "outcore/runtime.h"
#include "outcore/store_kind.h"

namespace outcore::cli {
namespace {

struct Entry {
  const char* name;
  const char* help;
};

constexpr Entry kPolicies[] = {
    {"auto", "whichever of the others misses least, by trial on a sample of the pages"},
    {"s3-fifo", "three queues and ghosts; :small=3%,cool=5%"},
    {"di-mmap", "primary and hot FIFO, eviction queue, fault counts; :hot=75%"},
    {"fifo", "first in, first out"}};

constexpr Entry kLimits[] = {
    {"page size", "a power of two, 4 KiB … 16 MiB, for each region"},
    {"offset", "a multiple of 4 KiB"},
    {"metadata", "8 bytes a touched page and 61 (at most 64) bytes a frame, beside the budget"}};

// "name = value (where from)", one a line, as Runtime tells them.
Result<std::vector<std::string>> option_lines() {
  auto runtime = Runtime::start();
  if (!runtime) return runtime.error();
  return split(runtime->describe_options(), '\n');
}

void print_rows(const char* title, std::span<const Entry> rows) {
  std::printf("\n%s\n", title);
  for (const Entry& row : rows) std::printf("  %-16s %s\n", row.name, row.help);
}

// `text` in lines of at most `columns`, divided where a parameter begins.
std::vector<std::string> in_lines(const std::string& text, size_t columns) {
  std::vector<std::string> lines(1);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('&', at + 1), text.size());
    if (!lines.back().empty() && lines.back().size() + end - at > columns) lines.emplace_back();
    lines.back().append(text, at, end - at);
    at = end;
  }
  return lines;
}

// All kinds that are registered, each in its own words.
void print_stores() {
  constexpr size_t kColumns = 80;
  const std::vector<const StoreKind*> kinds = store_kinds();
  size_t width = 0;
  for (const StoreKind* kind : kinds) width = std::max(width, kind->scheme.size());
  std::printf("\nStores\n");
  for (const StoreKind* kind : kinds) {
    const int columns = static_cast<int>(width);
    std::printf("  %-*s  %s\n", columns, kind->scheme.c_str(), kind->summary.c_str());
    for (const std::string& line : in_lines(kind->syntax, kColumns))
      std::printf("  %-*s  %s\n", columns, "", line.c_str());
  }
}

Json stores_to_json() {
  Json list = Json::array();
  for (const StoreKind* kind : store_kinds())
    list.push_back({{"name", kind->scheme}, {"syntax", kind->syntax}, {"help", kind->summary}});
  return list;
}

Json rows_to_json(std::span<const Entry> rows) {
  Json list = Json::array();
  for (const Entry& row : rows) list.push_back({{"name", row.name}, {"help", row.help}});
  return list;
}

Json metrics_to_json() {
  Json list = Json::array();
  for (const MetricInfo& m : metric_list())
    list.push_back({{"name", m.name},
                    {"unit", m.unit},
                    {"help", m.help},
                    {"kind", m.is_counter ? "counter" : "gauge"}});
  return list;
}

void print_json(const std::vector<std::string>* options, bool has_metrics) {
  Json all = {{"version", version()}};
  Json facts = Json::array();
  for (const SystemFact& fact : system_facts())
    facts.push_back({{"name", fact.name},
                     {"available", fact.is_available},
                     {"detail", fact.detail},
                     {"remedy", fact.remedy}});
  all["system"] = facts;
  const auto [budget, why] = default_budget();
  all["default_budget"] = {{"bytes", budget}, {"why", why}};
  all["stores"] = stores_to_json();
  all["policies"] = rows_to_json(kPolicies);
  all["limits"] = rows_to_json(kLimits);
  if (has_metrics) all["metrics"] = metrics_to_json();
  if (options != nullptr) all["options"] = *options;
  show_json(all, 2);
}

void print_text(const std::vector<std::string>* options, bool has_metrics) {
  std::printf("outcore %s\n\nThis machine and process\n", version());
  for (const SystemFact& fact : system_facts()) {
    std::printf("  %-3s %-24s %s\n", fact.is_available ? "yes" : "no", fact.name.c_str(),
                fact.detail.c_str());
    if (!fact.remedy.empty()) std::printf("  %-3s %-24s remedy: %s\n", "", "", fact.remedy.c_str());
  }
  std::printf(
      "  (of programs that use the library; `outcore check PROGRAM` says what `run` takes)\n");
  const auto [budget, why] = default_budget();
  std::printf("\nDefault budget: %s (%s)\n", format_bytes(budget).c_str(), why.c_str());
  print_stores();
  print_rows("Policies", kPolicies);
  print_rows("Limits", kLimits);
  if (has_metrics) {
    std::printf("\nMetrics\n");
    for (const MetricInfo& m : metric_list())
      std::printf("  %-20.*s %-12.*s %.*s\n", static_cast<int>(m.name.size()), m.name.data(),
                  static_cast<int>(m.unit.size()), m.unit.data(), static_cast<int>(m.help.size()),
                  m.help.data());
  }
  if (options == nullptr) return;
  std::printf("\nOptions, and where each was set\n");
  for (const std::string& line : *options) std::printf("  %s\n", line.c_str());
}

struct Flags {
  bool is_json = false, has_options = false, has_metrics = false;
};

int run_info(const Flags& flags) {
  // OUTCORE_KERNEL counts without --options, too: it changes what is told of the machine.
  std::vector<std::string> options;
  if (flags.has_options || std::getenv("OUTCORE_KERNEL") != nullptr) {
    auto lines = option_lines();
    if (!lines && (flags.has_options || lines.code() == EINVAL)) return report(lines.error());
    if (lines) options = *lines;
  }
  const std::vector<std::string>* const shown = flags.has_options ? &options : nullptr;
  if (flags.is_json)
    print_json(shown, flags.has_metrics);
  else
    print_text(shown, flags.has_metrics);
  return 0;
}

}  // namespace

void add_info(CommandSyntax& outcore) {
  auto flags = std::make_shared<Flags>();
  outcore.add("info", "What the kernel and this process offer, what is missing and the remedy")
      .flag("--json", flags->is_json, "one JSON object")
      .flag("--options", flags->has_options, "also every option, its value and where it was set")
      .flag("--metrics", flags->has_metrics, "also the list of metrics, with units and help")
      .footer(
          "Examples:\n  outcore info\n  OUTCORE_BUDGET=4G outcore info --options\n"
          "  outcore info --json | jq .default_budget")
      .runs([flags] { return run_info(*flags); });
}

}  // namespace outcore::cli
