#include "sight/commands/last_record.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>

#include "cli/text.h"
#include "core/recording/run_facts.h"
#include "core/runtime/option_table.h"
#include "outcore/sight.h"
#include "outcore/store_catalog.h"
#include "sight/commands/change.h"
#include "sight/commands/own_command.h"
#include "sight/commands/process_facts.h"
#include "sight/commands/shared_buffer.h"
#include "sight/commands/verdict.h"
#include "sight/commands/watch_json.h"

namespace outcore::cli {
namespace {

// By name, options that its environment sets; not `report`, a file of the run's own. Variables that
// are no options may be secrets of others; they stay where they are.
std::map<std::string, std::string> settings_of(pid_t process) {
  std::map<std::string, std::string> settings;
  for (const std::string& text : proc_texts(process, "environ")) {
    constexpr std::string_view kBegin = "OUTCORE_";
    const size_t end = text.find('=');
    if (end == std::string::npos || !text.starts_with(kBegin)) continue;
    std::string name = text.substr(kBegin.size(), end - kBegin.size());
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name != "report" && runtime::find_option(name) != nullptr)
      settings[name] = without_password(text.substr(end + 1));
  }
  return settings;
}

double seconds_since(uint64_t since_1970_ns) {
  const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  return std::max(0.0, static_cast<double>(now.count()) - static_cast<double>(since_1970_ns)) *
         1e-9;
}

// As a recorder has it, but for what it alone has seen.
Json files_of(const Metrics& metrics, const Json& regions) {
  Json files = Json::array();
  for (size_t i = 0; i < metrics.regions.size(); ++i) {
    const RegionMetrics& region = metrics.regions[i];
    Json file = regions[i];
    file.erase("address");
    file["touched_bytes"] = distinct_bytes_of(region);
    file["fetches"] = region.fetches.to_text(region.page_bytes);
    files.push_back(std::move(file));
  }
  return files;
}

bool is_same_file(int one, int other) {
  struct stat a {
  }, b{};
  return ::fstat(one, &a) == 0 && ::fstat(other, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

// By URI. Of a file that is mapped twice the larger counts are taken.
std::map<std::string, RegionMetrics> by_uri(const std::vector<RegionMetrics>& regions) {
  std::map<std::string, RegionMetrics> files;
  for (const RegionMetrics& region : regions) {
    const auto [file, is_new] = files.try_emplace(region.uri, region);
    if (!is_new) raise(region.counters, &file->second.counters);
  }
  return files;
}

void add(const FetchMetrics& more, FetchMetrics* all) {
  for (size_t i = 0; i < FetchMetrics::kSizes; ++i) all->clusters[i] += more.clusters[i];
  all->left_out += more.left_out;
  all->left_out_used += more.left_out_used;
}

Json record_of(const PublishedRuntime& runtime, const std::vector<std::string>& arguments,
               const std::vector<std::string>& run_command, const std::vector<BufferFacts>& buffers,
               std::map<std::string, std::string> settings) {
  const Json all = Json::parse_or_null(runtime.metrics.to_json());
  std::string command;
  for (const std::string& word : arguments) command += (command.empty() ? "" : " ") + word;
  Json record;
  record["format"] = "outcore-run";
  record["version"] = 1;
  record["program"] = Json{{"command", command},
                           {"arguments", Json(arguments)},
                           {"run_command", run_command.empty() ? Json() : Json(run_command)},
                           {"pid", static_cast<int64_t>(runtime.process)},
                           {"started", recording::time_text(runtime.started_ns)},
                           {"runtime_started_ns", runtime.started_ns},
                           {"seconds", seconds_since(runtime.started_ns)}};
  record["environment"] = recording::environment_facts();  // this process is on the same machine
  record["environment"]["outcore"] = runtime.version;
  settings["policy"] = runtime.policy;
  settings.try_emplace("budget", format_bytes(runtime.metrics.gauges.budget_bytes) + " (" +
                                     runtime.budget_source + ")");
  record["settings"] = Json(settings);
  if (!runtime.policy_now.empty()) record["policy"] = Json{{"last", runtime.policy_now}};
  record["sources"] = Json::object();
  if (!runtime.budget_source.starts_with("default"))
    record["sources"]["budget"] = runtime.budget_source;
  for (const char* name : {"counters", "gauges"}) record[name] = all[name];
  record["latency"] = all["fault_latency"];
  if (const BufferFacts* const buffer = buffer_of(runtime, buffers); buffer != nullptr)
    record["buffer"] = json_of(*buffer);
  record["files"] = files_of(runtime.metrics, all["regions"]);
  record["left_to_kernel"] = Json::array();
  for (const LeftFile& file : runtime.left_files) record["left_to_kernel"].push_back(json_of(file));
  return record;
}

}  // namespace

LastRecord::~LastRecord() {
  for (const Kept& kept : kept_) ::close(kept.descriptor);
}

void LastRecord::look() {
  // Before it may have ended.
  const std::vector<std::string> arguments = proc_texts(process_, "cmdline");
  const std::vector<std::string> run_command = run_command_of(process_);
  const std::map<std::string, std::string> settings = settings_of(process_);
  const std::vector<int> now = keep_published(process_);
  for (Kept& kept : kept_)
    kept.is_there = std::any_of(now.begin(), now.end(), [&](int descriptor) {
      return is_same_file(kept.descriptor, descriptor);
    });
  for (const int descriptor : now) {
    if (std::any_of(kept_.begin(), kept_.end(),
                    [&](const Kept& kept) { return is_same_file(kept.descriptor, descriptor); })) {
      ::close(descriptor);
      continue;
    }
    if (kept_.size() == kRuntimesMax) {
      ::close(kept_.front().descriptor);
      kept_.erase(kept_.begin());
    }
    kept_.push_back({descriptor, true, arguments, run_command, {}, settings, {}});
  }
  for (Kept& kept : kept_)
    if (kept.is_there) see(&kept);
}

void LastRecord::see(Kept* kept) {
  Result<PublishedRuntime> runtime = look_at_kept(kept->descriptor);
  if (!runtime) return;
  for (const auto& [uri, file] : by_uri(runtime->metrics.regions))
    if (kept->files.size() < kFilesMax || kept->files.contains(uri)) kept->files[uri].see(file);
  // Once the process has ended its buffer may be gone; none can be listed while it begins.
  if (std::vector<BufferFacts> all = buffers_of({std::move(runtime).value()}); !all.empty())
    kept->buffers = std::move(all);
}

void LastRecord::SeenFile::see(const RegionMetrics& now) {
  if (has_fallen(now.counters, last.counters)) {
    before += last.counters;
    add(last.fetches, &fetches_before);
  }
  last = now;
}

// Those of now, and those that are not mapped any more, with all that was counted of them.
std::vector<RegionMetrics> LastRecord::all_files(const std::vector<RegionMetrics>& now,
                                                 std::map<std::string, SeenFile> seen) {
  for (const auto& [uri, file] : by_uri(now))
    if (const auto earlier = seen.find(uri); earlier != seen.end()) earlier->second.see(file);
  std::vector<RegionMetrics> all = now;
  for (RegionMetrics& region : all) {
    const auto earlier = seen.find(region.uri);
    if (earlier == seen.end()) continue;
    region.counters += earlier->second.before;
    add(earlier->second.fetches_before, &region.fetches);
    seen.erase(earlier);
  }
  for (auto& [uri, file] : seen) {
    file.last.counters += file.before;
    add(file.fetches_before, &file.last.fetches);
    file.last.resident_bytes = 0;
    all.push_back(std::move(file.last));
  }
  return all;
}

bool LastRecord::has_seen_files() const {
  return std::any_of(kept_.begin(), kept_.end(),
                     [](const Kept& kept) { return kept.is_there && !kept.files.empty(); });
}

std::vector<Json> LastRecord::make(const std::string& end,
                                   const std::set<uint64_t>& recorded) const {
  std::vector<Json> records;
  for (const Kept& kept : kept_) {
    Result<PublishedRuntime> runtime = look_at_kept(kept.descriptor);
    if (!runtime || brought_in(runtime->metrics.counters) == 0) continue;
    if (recorded.contains(runtime->started_ns)) continue;
    runtime->process = process_;  // it may have another number where it runs
    runtime->metrics.regions = all_files(runtime->metrics.regions, kept.files);
    Json record =
        record_of(runtime.value(), kept.arguments, kept.run_command, kept.buffers, kept.settings);
    record["ended"] = kept.is_there ? end : "became another program";
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace outcore::cli
