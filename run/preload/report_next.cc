#include "run/preload/report_next.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/base/units.h"
#include "core/os/memory_limit.h"

namespace outcore::preload {
namespace {

using base::Json;

constexpr uint64_t kPagesMin = 4096;  // fewer cost too little to be worth a change
constexpr uint64_t kLargerPageBytes = 64 << 10;
constexpr uint64_t kLargerPagesMin = 1024;

// Sums over all files of a process, its allocations included.
struct Sums {
  uint64_t faults = 0, pages = 0;  // pages that were brought in
  uint64_t fills = 0;              // of `pages`: by faults, with I/O
  uint64_t learnt = 0;             // of `pages`: as a profile says, in any order
  uint64_t size_bytes = 0, read_bytes = 0, read_again_bytes = 0;
};

uint64_t number(const Json& j, const char* name) { return j.value(name, uint64_t{0}); }

Sums sums_of(const Json& process) {
  Sums sums;
  for (const Json& f : process["files"]) {
    const Json& counters = f["counters"];
    const uint64_t size = number(f, "file_bytes"), read = number(f, "read_bytes");
    sums.faults += number(counters, "faults");
    sums.pages += number(f, "fills");
    sums.fills += number(counters, "fills");
    sums.learnt += number(counters, "learnt_fills");
    sums.size_bytes += size;
    sums.read_bytes += read;
    sums.read_again_bytes += read - std::min(read, size);
  }
  return sums;
}

struct Change {
  std::string option, value, why;
};

std::string size_of(uint64_t bytes) {
  const bool is_whole = bytes % (1 << 20) == 0;
  return is_whole ? std::to_string(bytes >> 20) + "M" : std::to_string((bytes + 1023) >> 10) + "k";
}

bool is_messages_asked_for() {
  const char* const delivery = std::getenv("OUTCORE_DELIVERY");
  return delivery != nullptr && std::string_view(delivery) == "messages";
}

// Such a budget is as large as it can be already.
bool is_budget_adapting() {
  const char* const budget = std::getenv("OUTCORE_BUDGET");
  return budget != nullptr && std::string_view(budget) == "auto";
}

Change find_change(const Json& process, const Sums& sums) {
  if (sums.pages < kPagesMin) return {};
  const uint64_t budget = number(process, "budget_bytes");
  const uint64_t page_bytes = std::max<uint64_t>(number(process, "page_bytes"), 1);
  if (sums.read_again_bytes * 2 > sums.read_bytes && budget < sums.size_bytes &&
      os::memory_available().bytes >= budget && !is_budget_adapting())
    return {"--budget", size_of(2 * budget), "pages were read again and again"};
  if (process.value("delivery", "") != "messages") return {};
  const uint64_t all_read = sums.read_bytes / page_bytes;
  const uint64_t pages_read = all_read - std::min(all_read, sums.learnt);
  const bool is_in_order = pages_read >= kPagesMin && pages_read > 2 * sums.fills;
  if (page_bytes < kLargerPageBytes && is_in_order && budget >= kLargerPagesMin * kLargerPageBytes)
    return {"--page", "64k", "most of it was read in order"};
  if (sums.faults >= kPagesMin && !is_messages_asked_for())
    return {"--delivery", "in-thread",
            "faults cost half, if the program hands no mapped memory to unknown system calls"};
  return {};
}

}  // namespace

std::string next_command(const std::vector<Json>& processes, std::vector<std::string> command) {
  Change change;
  uint64_t pages_max = 0;
  for (const Json& process : processes) {
    const Sums sums = sums_of(process);
    if (sums.pages <= pages_max) continue;
    pages_max = sums.pages;
    change = find_change(process, sums);
  }
  if (change.option.empty()) return {};
  if (command.size() < 2) command = {"outcore run", "…"};  // not started by `outcore run`
  const std::string line = change.option + " " + change.value;
  const auto before = std::find_if(command.begin(), command.end(), [&](const std::string& given) {
    return given.starts_with(change.option + " ");
  });
  if (before != command.end())
    *before = line;
  else
    command.insert(command.end() - 1, line);
  std::string text = "  next, as " + change.why + ":\n   ";
  for (const std::string& part : command) text += " " + part;
  return text + "\n";
}

}  // namespace outcore::preload
