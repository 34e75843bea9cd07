// Verdict: what the figures of a program mean, in sentences: what it waited for, what limits it,
// and what to try. Of a run that is over (`outcore report`) and of one that goes on (`outcore
// explain`).
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "outcore/metrics.h"
#include "outcore/sight.h"
#include "sight/commands/own_command.h"

namespace outcore::cli {

// What limits a program, as far as paging does.
enum class Limit : uint8_t { kNothing, kBudget, kWriteBack, kDevice, kFaultCost };
const char* name_of(Limit limit);

struct RunFacts {
  double seconds = 0;  // that it has run
  std::string ended;   // how, of a program that could not write its record: "was ended by signal 9"
  Counters counters;
  LatencyHistogram latency;
  uint64_t budget_bytes = 0, used_bytes_max = 0, page_bytes = 4096;
  uint64_t touched_bytes = 0;  // of stores: distinct bytes that were brought in
  bool is_degraded = false;
  struct File {
    std::string uri, fetches;
    uint64_t brought_in = 0, read_bytes = 0, size_bytes = 0, resident_bytes = 0;
  };
  // Other processes have its pages, too: the buffer's name, whose limit is the budget then.
  std::string buffer;
  bool is_running = false;
  std::vector<File> files;           // the one with the most pages brought in first
  std::vector<LeftFile> left_files;  // whose mappings are the kernel's
  std::string policy,
      place;  // where the code misses most: "81 % of them at f (f.c:12)"; empty: unknown
  // What a larger budget would save of what was brought in: 0 … 1; 0 bytes: not known.
  uint64_t better_budget_bytes = 0;
  double better_share_saved = 0;
  uint64_t memory_bytes = UINT64_MAX;  // that a budget may have
  bool is_messages = false, is_messages_asked_for = false, is_budget_adapting = false;
  OwnCommand command;
};

struct Verdict {
  Limit limit = Limit::kNothing;
  std::string headline;
  std::vector<std::string> sentences, next;
};
Verdict verdict_of(const RunFacts& facts);
Json json_of(const Verdict& verdict);

// Of counters and latency as JSON has them, by name; missing ones are 0.
Counters counters_of(const Json& json);
LatencyHistogram latency_of(const Json& json);
// By which policy pages left in a record's run; of `auto`, which one that was.
std::string policy_text(const Json& record);
std::vector<LeftFile> left_files_of(const Json& json);
// Pages brought in, and those of them that had not been in memory before.
uint64_t brought_in(const Counters& counters);
uint64_t brought_in_first(const Counters& counters);

}  // namespace outcore::cli
