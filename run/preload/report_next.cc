#include "run/preload/report_next.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/base/next_run.h"
#include "core/os/memory_limit.h"

namespace outcore::preload {
namespace {

using base::Json;

constexpr uint64_t kPagesMin = 4096;  // fewer cost too little to be worth a change

uint64_t number(const Json& j, const char* name) { return j.value(name, uint64_t{0}); }

uint64_t pages_of(const Json& process) {
  uint64_t pages = 0;
  for (const Json& file : process["files"]) pages += number(file, "fills");
  return pages;
}

std::string_view variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

base::PastRun past_run(const Json& process) {
  base::PastRun run;
  for (const Json& file : process["files"]) {  // its allocations are one of them
    const Json& counters = file["counters"];
    Counters one;
#define OUTCORE_READ(name, unit, help) one.name = number(counters, #name);
    OUTCORE_COUNTERS(OUTCORE_READ)
#undef OUTCORE_READ
    run.counters += one;
    const uint64_t size = number(file, "file_bytes");
    run.files_bytes += size;
    run.read_again_bytes += one.read_bytes - std::min(one.read_bytes, size);
  }
  run.budget_bytes = number(process, "budget_bytes");
  run.page_bytes = number(process, "page_bytes");
  run.memory_bytes = run.budget_bytes + os::memory_available().bytes;
  run.is_messages = process.value("delivery", "") == "messages";
  run.is_messages_asked_for = variable("OUTCORE_DELIVERY") == "messages";
  run.is_budget_adapting = variable("OUTCORE_BUDGET") == "auto";
  return run;
}

// The value of --report, as it was typed; empty: it was not, or as none.
std::string_view report_of(const std::vector<std::string>& command) {
  constexpr std::string_view kOption = "--report ";
  std::string_view file;
  for (const std::string& given : command)
    if (given.starts_with(kOption)) file = std::string_view(given).substr(kOption.size());
  return file == "none" ? "" : file;
}

// The command itself makes that, and tells what is to be tried. It may be in quotes.
bool is_page(std::string_view file) {
  if (file.ends_with("'")) file.remove_suffix(1);
  return file.ends_with(".html") || file.ends_with(".htm");
}

}  // namespace

std::string next_command(const std::vector<Json>& processes,
                         const std::vector<std::string>& command) {
  const std::string_view report = report_of(command);
  if (is_page(report)) return {};
  const auto most =
      std::max_element(processes.begin(), processes.end(),
                       [](const Json& a, const Json& b) { return pages_of(a) < pages_of(b); });
  if (most == processes.end() || pages_of(*most) < kPagesMin) return {};
  if (!report.empty())
    return "  next, as the record knows more:\n    outcore report " + std::string(report) + "\n";
  const base::NextChange change = base::find_next_change(past_run(*most));
  if (change.option.empty()) return {};
  std::string text =
      "  next, as " + change.why + ":\n    " + base::changed_command(command, change) + "\n";
  // The budget of the first process in a buffer that others have, too, is the limit for all.
  const std::string buffer(variable("OUTCORE_BUFFER"));
  if (change.option == "--budget" && !buffer.empty() && buffer != "none")
    text += "  or, while the buffer " + buffer + " lasts:\n    outcore buffers resize " + buffer +
            " " + change.value + "\n";
  return text;
}

}  // namespace outcore::preload
