// Next run: the one change of options that is likely to help the next run of a program most, and
// the command to type. The table of `outcore run` has its rule from here, and so have `outcore
// report` and `outcore explain`, so that all give the same advice on one run.
//
// The first rule that holds counts:
//
// 1. --budget: more than a third of what came in had been in memory before (which the pages show;
// and of a file of n bytes, of which m were read: m - n), the files together are larger than the
// budget, and the memory for a larger one is there. It is doubled, unless a record's miss curve
// knows better.
//
// 2. --page 64k: message delivery, smaller pages, more than half of the pages that were read came
// ahead of their faults, so in order; and the budget has room for 1024 of the larger pages. Pages
// that read zero without I/O do not count as read. With in-thread delivery larger pages gain
// nothing when they are read in order, and out of order they read more.
//
// 3. --delivery in-thread: message delivery, 4096 faults or more, and --delivery messages was not
// given. This rule is last, because people must decide whether their program allows it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "outcore/metrics.h"

namespace outcore::base {

// What was typed, for the processes of a run: the lines that run/commands/run_command.h makes.
inline constexpr const char* kRunCommandVariable = "OUTCORE_RUN_COMMAND";

// Of what came in: if more of it had been in memory before, the budget is what limits.
inline constexpr double kAgainShare = 1.0 / 3;

struct PastRun {
  Counters counters;              // of all its files
  uint64_t read_again_bytes = 0;  // the sum over its files
  uint64_t files_bytes = 0, budget_bytes = 0, page_bytes = 0;
  uint64_t memory_bytes = 0;         // that a budget may have
  uint64_t better_budget_bytes = 0;  // by the miss curve; 0: not known
  bool is_messages = false, is_messages_asked_for = false, is_budget_adapting = false;

  // Which part of what came in had been in memory before: 0 … 1.
  double again_share() const {
    const auto share = [](uint64_t part, uint64_t all) {
      return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
    };
    return std::max(share(counters.refaults, counters.fills + counters.prefetch_fills),
                    share(read_again_bytes, counters.read_bytes));
  }
};

struct NextChange {
  std::string option, value, why;  // empty: none
};

// As options take it: "80M", "4500k".
inline std::string size_option(uint64_t bytes) {
  constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;
  return bytes % kMiB == 0 ? std::to_string(bytes / kMiB) + "M"
                           : std::to_string((bytes + kKiB - 1) / kKiB) + "k";
}

// A budget that is larger; none if the memory is not there, or the budget adapts: then it is as
// large as it can be already.
inline NextChange larger_budget(const PastRun& run) {
  constexpr uint64_t kMiB = 1 << 20;
  const uint64_t wanted = run.better_budget_bytes == 0
                              ? 2 * run.budget_bytes
                              : (run.better_budget_bytes + kMiB - 1) / kMiB * kMiB;
  if (run.is_budget_adapting || wanted == 0 || wanted > run.memory_bytes) return {};
  return {"--budget", size_option(wanted), "pages were read again and again"};
}

inline NextChange find_next_change(const PastRun& run) {
  constexpr uint64_t kPagesMin = 4096, kFaultsMin = 4096, kLargerPagesMin = 1024;
  constexpr uint64_t kLargerPageBytes = 64 << 10;
  if (run.again_share() > kAgainShare && run.budget_bytes < run.files_bytes)
    if (NextChange change = larger_budget(run); !change.option.empty()) return change;
  if (!run.is_messages) return {};
  const Counters& c = run.counters;
  const uint64_t all_read = c.read_bytes / std::max<uint64_t>(run.page_bytes, 1);
  const uint64_t pages_read = all_read - std::min(all_read, c.learnt_fills);
  const bool is_in_order = pages_read >= kPagesMin && pages_read > 2 * c.fills;
  if (run.page_bytes < kLargerPageBytes && is_in_order &&
      run.budget_bytes >= kLargerPagesMin * kLargerPageBytes)
    return {"--page", "64k", "most of it was read in order"};
  if (c.faults >= kFaultsMin && !run.is_messages_asked_for)
    return {"--delivery", "in-thread",
            "faults cost half, if the program hands no mapped memory to unknown system calls"};
  return {};
}

// The option is replaced in it, or added as the last one before the program. Two words at least:
// the command, and the program.
inline std::string changed_command(std::vector<std::string> command, const NextChange& change) {
  if (command.size() < 2) command = {"outcore run", "…"};
  const std::string line = change.option + " " + change.value;
  const auto before = std::find_if(command.begin(), command.end(), [&](const std::string& given) {
    return given.starts_with(change.option + " ");
  });
  if (before != command.end())
    *before = line;
  else
    command.insert(command.end() - 1, line);
  std::string text;
  for (const std::string& part : command) text += (text.empty() ? "" : " ") + part;
  return text;
}

}  // namespace outcore::base
