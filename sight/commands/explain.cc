// outcore explain: what a running program's paging comes to, in sentences.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/interrupts.h"
#include "cli/json.h"
#include "cli/text.h"
#include "outcore/sight.h"
#include "sight/commands/change.h"
#include "sight/commands/observed.h"
#include "sight/commands/process_facts.h"
#include "sight/commands/shared_buffer.h"
#include "sight/commands/verdict.h"
#include "sight/commands/watch.h"

namespace outcore::cli {
namespace {

struct Words {
  std::string process;
  bool is_json = false;
};

uint64_t now_since_1970_ns() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count());
}

// Distinct bytes that came in: of stores that are mapped by their pages; of those that are gone
// nobody knows how large these were, and most have the kernel's.
uint64_t touched_bytes(const Metrics& metrics) {
  constexpr uint64_t kUsualPage = 4096;
  uint64_t bytes = 0, pages = 0;
  for (const RegionMetrics& region : metrics.regions) {
    bytes += distinct_bytes_of(region);
    pages += brought_in_first(region.counters);
  }
  const uint64_t all = brought_in_first(metrics.counters);
  return bytes + (all - std::min(all, pages)) * kUsualPage;
}

RunFacts facts_of(const PublishedRuntime& runtime, const BufferFacts* buffer) {
  RunFacts facts;
  const Metrics& m = runtime.metrics;
  const uint64_t now_ns = now_since_1970_ns();
  facts.seconds = static_cast<double>(now_ns - std::min(now_ns, runtime.started_ns)) * 1e-9;
  facts.command = own_command_of(runtime.process, runtime.budget_source);
  const auto set_to = [&](const char* variable) {
    const auto found = facts.command.variables.find(variable);
    return found == facts.command.variables.end() ? std::string() : found->second;
  };
  facts.is_budget_adapting = set_to("OUTCORE_BUDGET") == "auto";
  facts.is_messages_asked_for = set_to("OUTCORE_DELIVERY") == "messages";
  facts.memory_bytes = machine_memory_bytes();
  facts.counters = m.counters;
  facts.latency = m.fault_latency;
  facts.budget_bytes = m.gauges.budget_bytes;
  facts.used_bytes_max = m.gauges.used_bytes_max;
  facts.is_running = true;
  if (buffer != nullptr) {
    facts.buffer = buffer->name;
    facts.budget_bytes = buffer->limit_bytes;
    facts.used_bytes_max = std::max(buffer->used_bytes_max, buffer->used_bytes);
  }
  facts.is_degraded = m.gauges.degraded != 0;
  facts.policy = runtime.policy;
  if (!runtime.policy_now.empty()) facts.policy += ", which is " + runtime.policy_now + " now";
  facts.left_files = runtime.left_files;
  facts.touched_bytes = touched_bytes(m);
  for (const RegionMetrics& region : m.regions) {
    facts.files.push_back({region.uri, region.fetches.to_text(region.page_bytes),
                           brought_in(region.counters), region.counters.read_bytes,
                           region.size_bytes, region.resident_bytes});
    facts.page_bytes = region.page_bytes;
    facts.is_messages = facts.is_messages || region.delivery == "messages";
  }
  std::stable_sort(facts.files.begin(), facts.files.end(),
                   [](const auto& a, const auto& b) { return a.brought_in > b.brought_in; });
  return facts;
}

// Of the last moments alone: what a long run has waited before says nothing of them.
RunFacts facts_of_now(const RunFacts& whole, const Change& change) {
  RunFacts facts = whole;
  facts.seconds = change.seconds;
  facts.counters = change.counters;
  facts.latency = change.latency;
  facts.touched_bytes = 0;
  facts.left_files.clear();
  for (RunFacts::File& file : facts.files) file.brought_in = file.read_bytes = 0;
  return facts;
}

std::string state_sentence(const PublishedRuntime& runtime, const RunFacts& facts,
                           const BufferFacts* buffer) {
  const Gauges& g = runtime.metrics.gauges;
  const std::string ran = "It has run for " + format_seconds(facts.seconds) + " with " +
                          std::to_string(runtime.metrics.regions.size()) + " store" +
                          (runtime.metrics.regions.size() == 1 ? "" : "s") + " mapped; ";
  if (buffer == nullptr)
    return ran + format_bytes(g.used_bytes) + " of its budget of " + format_bytes(g.budget_bytes) +
           " are in use (" + one_line(runtime.budget_source) + ").";
  return ran + format_bytes(buffer->used_bytes) + " of the " + format_bytes(buffer->limit_bytes) +
         " of the buffer " + one_line(buffer->name) + " are in use, which " +
         std::to_string(buffer->members.size()) + " process" +
         (buffer->members.size() == 1 ? " has." : "es share.");
}

// Of the whole run, and of the last second, which may be of another kind.
Verdict explained(const RuntimeView& runtime, const RunFacts& facts, const BufferFacts* buffer,
                  Json* json) {
  Verdict verdict = verdict_of(facts);
  std::vector<std::string> first{state_sentence(runtime.now, facts, buffer)};
  if (runtime.change.is_known()) {
    const Verdict now = verdict_of(facts_of_now(facts, runtime.change));
    // Of a program that has mapped nothing but what is the kernel's, nothing is known.
    if (facts.left_files.empty() || !facts.files.empty())
      first.push_back("In the last second: " + now.headline);
    if (verdict.limit == Limit::kNothing && !now.next.empty()) {
      verdict.next = now.next;
      if (!now.sentences.empty()) first.push_back(now.sentences.back());
    }
    const bool is_known = runtime.change.is_stall_known();
    (*json)["last"] = {{"seconds", runtime.change.seconds},
                       {"stalled", is_known ? Json(runtime.change.stalled()) : Json()},
                       {"limit", name_of(now.limit)},
                       {"headline", now.headline}};
  }
  const Result<DirtyBytes> dirty = dirty_bytes(runtime.now.process);
  if (dirty) {
    first.push_back(format_bytes(dirty->all) + " of its memory are written and in no store yet.");
    (*json)["dirty_bytes"] = dirty->all;
  }
  verdict.sentences.insert(verdict.sentences.begin(), first.begin(), first.end());
  if (buffer == nullptr && !runtime.now.shared_buffer.empty())
    verdict.sentences.push_back("It shares pages with other processes in the buffer " +
                                one_line(runtime.now.shared_buffer) + ".");
  return verdict;
}

// Twice, a second apart; once, if the process ends meanwhile, or this one is told to.
Result<std::vector<RuntimeView>> look_for_a_second(pid_t process) {
  constexpr std::chrono::milliseconds kInterval{1000};
  catch_interrupts();
  Watch watch({process});
  if (const Status seen = watch.look(); !seen.ok()) return seen.error();
  const std::vector<RuntimeView> once = watch.processes().front().runtimes;
  if (wait_for(kInterval, -1, -1) != Waited::kTimePassed || !watch.look().ok()) return once;
  return watch.processes().front().runtimes;
}

int run(const Words& words) {
  const Result<pid_t> process = find_process(words.process);
  if (!process) return report(process.error());
  const Result<std::vector<RuntimeView>> all = look_for_a_second(process.value());
  if (!all) return report(all.error());
  std::vector<PublishedRuntime> now;
  for (const RuntimeView& runtime : all.value()) now.push_back(runtime.now);
  const std::vector<BufferFacts> buffers = buffers_of(now);
  Json list = Json::array();
  for (const RuntimeView& runtime : all.value()) {
    const BufferFacts* const buffer = buffer_of(runtime.now, buffers);
    const RunFacts facts = facts_of(runtime.now, buffer);
    Json json;
    const Verdict verdict = explained(runtime, facts, buffer, &json);
    if (words.is_json) {
      json.update(json_of(verdict));
      json["pid"] = static_cast<int64_t>(process.value());
      json["command"] = facts.command.program;
      if (buffer != nullptr) json["buffer"] = json_of(*buffer);
      json["metrics"] = Json::parse_or_null(runtime.now.metrics.to_json());
      list.push_back(std::move(json));
      continue;
    }
    std::printf("%s (%d)\n%s\n", facts.command.program.c_str(), process.value(),
                verdict.headline.c_str());
    for (const std::string& sentence : verdict.sentences) std::printf("%s\n", sentence.c_str());
    for (const std::string& next : verdict.next) std::printf("Try: %s\n", next.c_str());
  }
  if (words.is_json) show_json({{"runtimes", list}}, 2);
  return 0;
}

}  // namespace

void add_explain(CommandSyntax& outcore) {
  const auto words = std::make_shared<Words>();
  outcore.add("explain", "Say what a running program waits for, and what to try")
      .word("process", words->process, "its number, or its program's base name if only one has it")
      .type("PID|NAME")
      .required()
      .flag("--json", words->is_json, "one JSON object, with all figures")
      .footer(
          "It looks at what the process has counted since it began, and for a second at what it\n"
          "does now; the process is not asked.\n"
          "Exit status: 0 done; 1 it cannot be looked at; 2 usage.\n"
          "Examples:\n  outcore explain kraken2\n  outcore explain 4711 --json")
      .runs([words] { return run(*words); });
}

}  // namespace outcore::cli
