#include "sight/commands/verdict.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/assert.h"
#include "cli/command.h"
#include "cli/shell_word.h"
#include "cli/text.h"
#include "sight/commands/change.h"
#include "sight/commands/left_file.h"

namespace outcore::cli {
namespace {

constexpr double kNextToNothingShare = 0.02;  // of the time

double share(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}
double seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }
std::string percent(double share) {
  return format(share > 0 && share < 0.095 ? "%.1f %%" : "%.0f %%", share * 100);
}
std::string duration(uint64_t ns) { return format_seconds(seconds(ns)); }
// Of a bucket that is twice as wide as the one before: two figures say all that it does.
std::string edge(uint64_t ns) {
  CLI_CHECK(ns < UINT64_MAX / 2);  // the last bucket ends long before
  uint64_t unit = 1;
  while (ns / unit >= 100) unit *= 10;
  double shown = static_cast<double>((ns + unit / 2) / unit * unit) * 1e-3;
  const char* name = "us";
  for (const char* const larger : {"ms", "s"})
    if (shown >= 1000) shown /= 1000, name = larger;
  return format("%.3g %s", shown, name);
}

// What a wait took on average of the time that was not spent waiting for room.
double mean_wait_ns(const Counters& c) {
  return share(waited_ns(c) - std::min(waited_ns(c), c.wait_for_frame_ns), waits(c));
}

Limit limit_of(const RunFacts& facts) {
  constexpr double kNothingShare = 0.1;  // of the time
  constexpr double kDeviceFaultNs = 30'000;
  const Counters& c = facts.counters;
  if (facts.seconds == 0 || seconds(waited_ns(c)) < kNothingShare * facts.seconds)
    return Limit::kNothing;
  if (share(c.wait_for_frame_ns, waited_ns(c)) > 0.3)
    return c.write_backs != 0 ? Limit::kWriteBack : Limit::kBudget;
  if (share(c.refaults, brought_in(c)) > base::kAgainShare) return Limit::kBudget;
  return mean_wait_ns(c) > kDeviceFaultNs ? Limit::kDevice : Limit::kFaultCost;
}

std::string headline_of(const RunFacts& facts, Limit limit) {
  const Counters& c = facts.counters;
  if (brought_in(c) == 0 && c.faults == 0)
    return facts.left_files.empty() || !facts.files.empty()
               ? "Nothing had to be brought in: no page was touched that was not in memory."
               : "Nothing went through Outcore: what was mapped is the kernel's.";
  if (waits(c) == 0)  // the record of an earlier version does not know how long calls waited
    return c.fills == 0 ? "No touch found its page absent: what was needed had come in ahead."
                        : "No touch found its page absent: calls brought in what was needed, and "
                          "how long they waited is not counted.";
  // Of several threads, more seconds than there are.
  const double waited = seconds(waited_ns(c));
  const std::string time = format_seconds(waited) + " of waiting for pages in " +
                           format_seconds(facts.seconds) + " (" +
                           percent(facts.seconds == 0 ? 0 : waited / facts.seconds) +
                           (waited > facts.seconds ? ", of several threads)" : ")");
  switch (limit) {
    case Limit::kNothing:
      return (waited < kNextToNothingShare * facts.seconds ? "Paging cost next to nothing: "
                                                           : "Paging cost little: ") +
             time + ".";
    case Limit::kBudget:
      return "The budget is what limits: " + time + ".";
    case Limit::kWriteBack:
      return "Writing back is what limits: " + time + ".";
    case Limit::kDevice:
      return "The store is what limits: " + time + ".";
    case Limit::kFaultCost:
      return (c.call_waits > c.faults ? "Calls that bring pages in one by one are"
                                      : "The faults themselves are") +
             (" what limits: " + time) + ".";
  }
  return time;
}

void tell_faults(const RunFacts& facts, std::vector<std::string>* to) {
  const Counters& c = facts.counters;
  if (waits(c) == 0) return;
  const double rate = facts.seconds == 0 ? 0 : static_cast<double>(waits(c)) / facts.seconds;
  const std::string touches =
      format_count(static_cast<double>(c.faults)) + " touches found their page absent";
  const std::string calls = format_count(static_cast<double>(c.call_waits));
  const std::string what = c.call_waits == 0 ? touches
                           : c.faults == 0
                               ? calls + " times a call waited for a page that was not in memory"
                               : touches + ", and " + calls + " times a call waited for one";
  to->push_back(what + ", " + format_count(rate) + " a second; half of them waited less than " +
                edge(facts.latency.percentile_ns(0.5)) + ", one in a hundred more than " +
                edge(facts.latency.percentile_ns(0.99)) + ".");
}

void tell_reads(const RunFacts& facts, std::vector<std::string>* to) {
  const Counters& c = facts.counters;
  if (c.read_bytes == 0) {
    to->push_back("Nothing was read from stores.");
    return;
  }
  std::string text = format_bytes(c.read_bytes) + " were read";
  if (facts.touched_bytes != 0)
    text += " for " + format_bytes(facts.touched_bytes) + " that were needed at least once (" +
            format("%.2f", share(c.read_bytes, facts.touched_bytes)) + " times)";
  to->push_back(text + ", " + format_bytes(c.read_bytes / std::max<uint64_t>(c.read_requests, 1)) +
                " a transfer.");
}

void tell_refaults(const RunFacts& facts, std::vector<std::string>* to) {
  const Counters& c = facts.counters;
  if (brought_in(c) == 0) return;
  // What a buffer keeps is not up to one process alone, which knows what itself brought in.
  const std::string budget = facts.buffer.empty()
                                 ? "a budget of " + format_bytes(facts.budget_bytes)
                                 : "a buffer of " + format_bytes(facts.budget_bytes) + " (" +
                                       facts.buffer + ") for all its processes";
  if (c.refaults == 0 && !facts.buffer.empty()) {
    to->push_back("No page that it brought in had to come in by it again, with " + budget + ".");
    return;
  }
  if (c.refaults == 0) {
    to->push_back("No page came back after it had left: the budget of " +
                  format_bytes(facts.budget_bytes) + " was large enough.");
    return;
  }
  to->push_back(percent(share(c.refaults, brought_in(c))) +
                " of the pages that came in had been in memory before and had to leave, with " +
                budget + ".");
}

void tell_writes(const RunFacts& facts, std::vector<std::string>* to) {
  const Counters& c = facts.counters;
  if (c.written_bytes != 0)
    to->push_back(format_bytes(c.written_bytes) + " were written back, " +
                  format_bytes(c.written_bytes / std::max<uint64_t>(c.write_requests, 1)) +
                  " a transfer.");
  if (c.waits_for_frame != 0 && share(c.wait_for_frame_ns, waited_ns(c)) > 0.01)
    to->push_back(format_count(static_cast<double>(c.waits_for_frame)) +
                  " times a page could not come in before another had left, which took " +
                  duration(c.wait_for_frame_ns) + " in all.");
  if (facts.is_degraded || c.write_back_errors != 0)
    to->push_back(
        facts.is_degraded
            ? "Some bytes could not be stored, or not be read, and still are not: see the "
              "program's messages."
            : format_count(static_cast<double>(c.write_back_errors)) +
                  " write-backs failed at first, and were done later.");
}

void tell_where(const RunFacts& facts, std::vector<std::string>* to) {
  const Counters& c = facts.counters;
  if (c.prefetch_fills != 0)
    to->push_back(percent(share(c.prefetch_fills, brought_in(c))) +
                  " of the pages came in ahead of a touch, or along with one.");
  if (!facts.files.empty() && facts.files.front().brought_in != 0) {
    const RunFacts::File& file = facts.files.front();
    const double part = share(file.brought_in, brought_in(c));
    std::string text = (part > 0.995 ? "All" : percent(part)) +
                       " of the pages that came in are of " + file.uri + " (" +
                       format_bytes(file.size_bytes) + ")";
    if (facts.files.size() > 1 && part <= 0.995)
      text += ", more than of any other of " + std::to_string(facts.files.size()) + " files";
    if (!file.fetches.empty()) text += ", fetched by " + file.fetches;
    to->push_back(text + ".");
  }
  if (!facts.place.empty()) to->push_back(facts.place);
  // The policy of a program is for pages of its own alone.
  if (!facts.buffer.empty())
    to->push_back("Pages leave a buffer by the policy s3-fifo.");
  else if (!facts.policy.empty())
    to->push_back("Pages leave by the policy " + facts.policy + ".");
}

void tell_left_files(const RunFacts& facts, std::vector<std::string>* to) {
  constexpr size_t kToldMax = 3;
  std::set<std::string> paths;  // a file may have been left twice, for two reasons
  for (const LeftFile& file : facts.left_files) {
    if (file.path.empty() || !paths.insert(file.path).second || paths.size() > kToldMax) continue;
    to->push_back(file.path + " (" + format_bytes(file.size_bytes) + ") was " + how_left(file) +
                  ": " + why_left(file) + ".");
  }
  if (paths.size() > kToldMax)
    to->push_back("So were " + std::to_string(paths.size() - kToldMax) + " others.");
}

base::PastRun past_run(const RunFacts& facts) {
  base::PastRun run;
  run.counters = facts.counters;
  for (const RunFacts::File& file : facts.files) {
    run.files_bytes += file.size_bytes;
    run.read_again_bytes += file.read_bytes - std::min(file.read_bytes, file.size_bytes);
  }
  run.budget_bytes = facts.budget_bytes;
  run.page_bytes = facts.page_bytes;
  run.memory_bytes = facts.memory_bytes;
  run.better_budget_bytes = facts.better_budget_bytes;
  run.is_messages = facts.is_messages;
  run.is_messages_asked_for = facts.is_messages_asked_for;
  run.is_budget_adapting = facts.is_budget_adapting;
  return run;
}

// Where a profile is kept that --learn makes: of this program, in the folder where it is typed.
std::string profile_of(const std::string& program) {
  std::string name = program.substr(0, program.find(' '));
  name = name.substr(name.rfind('/') + 1);
  const bool is_plain = name.find_first_of("'\\") == std::string::npos && !name.empty();
  return (is_plain ? name : "program") + ".learnt";
}

// What the limit alone says, where the rule for all (core/base/next_run.h) says nothing.
base::NextChange change_for(Limit limit, const RunFacts& facts) {
  switch (limit) {
    case Limit::kBudget:
      return base::larger_budget(past_run(facts));
    case Limit::kWriteBack:
      return facts.command.has("--keepers") ? base::NextChange{}
                                            : base::NextChange{"--keepers", "2", ""};
    case Limit::kDevice:
      return facts.command.has("--learn")
                 ? base::NextChange{}
                 : base::NextChange{"--learn", profile_of(facts.command.program), ""};
    case Limit::kFaultCost:
    case Limit::kNothing:
      break;
  }
  return {};
}

// Not the one that the processes of a run share by themselves, whose limit is the run's own budget.
bool has_name_of_its_own(const std::string& buffer) {
  return !buffer.empty() && !buffer.starts_with("run-");
}

void tell_next(const RunFacts& facts, Verdict* verdict) {
  if (facts.better_budget_bytes != 0) {
    constexpr uint64_t kMiB = 1 << 20;  // what is to be typed, in whole MiB
    verdict->sentences.push_back(
        "A budget of " + format_bytes((facts.better_budget_bytes + kMiB - 1) / kMiB * kMiB) +
        " would have saved " + percent(facts.better_share_saved) +
        " of what came in, by a sample of the pages.");
  }
  const Limit limit = verdict->limit;
  if (limit == Limit::kNothing) return;
  base::NextChange change = base::find_next_change(past_run(facts));
  const bool is_common = !change.option.empty() && limit != Limit::kWriteBack;
  if (!is_common) change = change_for(limit, facts);
  // The limit of a buffer can be changed while it lives.
  if ((limit == Limit::kBudget || change.option == "--budget") && facts.is_running &&
      !facts.buffer.empty()) {
    const base::NextChange larger = base::larger_budget(past_run(facts));
    if (!larger.value.empty())
      verdict->next.push_back("outcore buffers resize " + shell_word(facts.buffer) + " " +
                              larger.value);
    return;
  }
  if (change.option == "--budget" && has_name_of_its_own(facts.buffer))
    verdict->sentences.push_back(
        "The limit is that of the buffer " + facts.buffer +
        ", for all its processes: the budget of the one that comes first. While it lasts, outcore "
        "buffers resize " +
        shell_word(facts.buffer) + " " + change.value + " changes it.");
  else if (change.option == "--page")
    verdict->sentences.push_back(
        "Most of it was read in order: larger pages make fewer faults, where they come by "
        "messages.");
  else if (change.option == "--delivery")
    verdict->sentences.push_back(
        "Faults came by messages: in-thread they cost half, if the program hands no mapped memory "
        "to unknown system calls.");
  else if (limit == Limit::kWriteBack)
    verdict->sentences.push_back(
        "Pages wait for the store to take what was written: a larger budget delays that, a faster "
        "store or more keepers shorten it.");
  else if (limit == Limit::kDevice && change.option == "--learn" && !facts.buffer.empty())
    verdict->sentences.push_back(
        "Most of what came in this process had not brought in before: a larger buffer saves it "
        "little; bringing it in ahead at the next start saves the waiting.");
  else if (limit == Limit::kDevice && change.option == "--learn")
    verdict->sentences.push_back(
        facts.better_budget_bytes != 0
            ? "Most of what came in was needed for the first time: no budget saves that; bringing "
              "it in ahead at the next start saves the waiting."
            : "Most of what came in was needed for the first time: a larger budget saves little; "
              "bringing it in ahead at the next start saves the waiting.");
  else if (limit == Limit::kFaultCost)
    verdict->sentences.push_back(
        "Pages came in quickly, and there were many of them: fewer touches of absent pages, by "
        "data in the order of its use, cost less.");
  if (!change.option.empty()) verdict->next.push_back(facts.command.with(change));
}

// Names of files and places are data, which may have line ends and escapes in them.
Verdict in_lines(Verdict verdict) {
  for (std::vector<std::string>* const texts : {&verdict.sentences, &verdict.next})
    for (std::string& text : *texts) text = one_line(std::move(text));
  return verdict;
}

}  // namespace

const char* name_of(Limit limit) {
  static constexpr const char* kNames[] = {"nothing", "budget", "write-back", "device",
                                           "fault cost"};
  CLI_CHECK(static_cast<size_t>(limit) < std::size(kNames));
  return kNames[static_cast<size_t>(limit)];
}

uint64_t brought_in(const Counters& counters) { return counters.fills + counters.prefetch_fills; }
uint64_t brought_in_first(const Counters& counters) {
  return brought_in(counters) - std::min(brought_in(counters), counters.refaults);
}

Verdict verdict_of(const RunFacts& facts) {
  Verdict verdict;
  verdict.limit = limit_of(facts);
  verdict.headline = headline_of(facts, verdict.limit);
  CLI_CHECK(!verdict.headline.empty());
  std::vector<std::string>* const to = &verdict.sentences;
  const bool is_idle = waits(facts.counters) == 0 && brought_in(facts.counters) == 0;
  if (is_idle) tell_left_files(facts, to);
  if (is_idle) return in_lines(std::move(verdict));
  if (!facts.ended.empty())
    to->push_back("The program " + facts.ended +
                  ": what it had counted is here; the timeline, heat maps, places in the code and "
                  "the miss curve, which it writes at exit(), are not.");
  tell_faults(facts, to);
  tell_reads(facts, to);
  tell_refaults(facts, to);
  tell_writes(facts, to);
  tell_where(facts, to);
  tell_left_files(facts, to);
  tell_next(facts, &verdict);
  return in_lines(std::move(verdict));
}

Json json_of(const Verdict& verdict) {
  Json json;
  json["limit"] = name_of(verdict.limit);
  json["headline"] = verdict.headline;
  json["sentences"] = Json(verdict.sentences);
  json["next"] = Json(verdict.next);
  return json;
}

std::string policy_text(const Json& record) {
  const std::string policy = record["settings"].value("policy", "");
  const std::string first = record["policy"].value("first", "");
  const std::string last = record["policy"].value("last", "");
  if (!policy.starts_with("auto") || last.empty()) return policy;
  const Json::Array& decisions = record["tuner"].items();
  const bool has_changed = std::any_of(decisions.begin(), decisions.end(), [](const Json& one) {
    return one.value("what", "").starts_with("policy: ");
  });
  if (first == last && !has_changed) return policy + ", which was " + last + " all the time";
  return policy + ", which was " + (first.empty() ? "" : first + " at first and ") + last +
         " at last";
}

Counters counters_of(const Json& json) {
  Counters counters;
#define OUTCORE_READ(name, unit, help) counters.name = json.value(#name, uint64_t{0});
  OUTCORE_COUNTERS(OUTCORE_READ)
#undef OUTCORE_READ
  return counters;
}

std::vector<LeftFile> left_files_of(const Json& json) {
  std::vector<LeftFile> files;
  for (const Json& file : json)
    files.push_back(
        {file.value("path", ""), file.value("reason", ""), file.value("size_bytes", uint64_t{0})});
  return files;
}

LatencyHistogram latency_of(const Json& json) {
  LatencyHistogram latency;
  const std::vector<uint64_t> buckets =
      json["buckets"].as<std::vector<uint64_t>>().value_or(std::vector<uint64_t>());
  std::copy_n(buckets.begin(), std::min(buckets.size(), latency.count.size()),
              latency.count.begin());
  return latency;
}

}  // namespace outcore::cli
