// outcore export: metrics of running programs for Prometheus.
#include "sight/commands/export.h"

#include <prometheus/exposer.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>

#include "cli/assert.h"
#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/interrupts.h"
#include "cli/json.h"
#include "cli/output_file.h"
#include "cli/text.h"
#include "outcore/buffers.h"
#include "outcore/sight.h"
#include "sight/commands/change.h"
#include "sight/commands/metric_families.h"
#include "sight/commands/observed.h"
#include "sight/commands/whole_file.h"

namespace outcore::cli {
namespace {

using prometheus::MetricFamily;

// What stores have of their own.
constexpr std::string_view kOfStores[] = {
    "faults",     "fills",         "prefetch_fills", "evictions",  "refaults",    "write_backs",
    "read_bytes", "written_bytes", "fault_ns",       "call_waits", "call_wait_ns"};

// Labels are UTF-8; names of files may be any bytes, and what is none is replaced.
std::string label_text(const std::string& text) {
  return Json::parse_or_null(Json(text).dump()).as<std::string>().value_or("");
}

std::string command_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  return label_text(one_line(name));
}

uint64_t value_of(const Counters& counters, std::string_view name) {
#define OUTCORE_VALUE(counter, unit, help) \
  if (name == #counter) return counters.counter;
  OUTCORE_COUNTERS(OUTCORE_VALUE)
#undef OUTCORE_VALUE
  CLI_CHECK(false && "a name of the list of counters");
  return 0;
}
uint64_t value_of(const Gauges& gauges, std::string_view name) {
#define OUTCORE_VALUE(gauge, unit, help) \
  if (name == #gauge) return gauges.gauge;
  OUTCORE_GAUGES(OUTCORE_VALUE)
#undef OUTCORE_VALUE
  CLI_CHECK(false && "a name of the list of gauges");
  return 0;
}

// `dirty`: of each store; shorter, or with nothing, where it is not known.
void add_stores(const Metrics& metrics, const MetricLabels& of_runtime,
                std::span<const std::optional<uint64_t>> dirty, MetricFamilies* families) {
  std::set<std::string> seen;  // of one name there may be several: private mappings
  for (size_t i = 0; i < metrics.regions.size(); ++i) {
    const RegionMetrics& region = metrics.regions[i];
    MetricLabels labels = of_runtime;
    const std::string text = label_text(region.uri);
    std::string store = text;
    for (unsigned n = 2; !seen.insert(store).second; ++n) store = text + "#" + std::to_string(n);
    labels.push_back({"store", std::move(store)});
    families->add("outcore_store_size_bytes", "the size of the store", false, labels,
                  static_cast<double>(region.size_bytes));
    families->add("outcore_store_page_bytes", "the size of its pages", false, labels,
                  static_cast<double>(region.page_bytes));
    families->add("outcore_store_resident_bytes", "of its pages, what is in memory", false, labels,
                  static_cast<double>(region.resident_bytes));
    if (i < dirty.size() && dirty[i])
      families->add("outcore_store_dirty_bytes", "of that, written and in no store yet", false,
                    labels, static_cast<double>(*dirty[i]));
    families->add("outcore_store_degraded", "1: something could not be stored, and still is not",
                  false, labels, region.is_degraded ? 1 : 0);
    for (const MetricInfo& metric : metric_list()) {
      if (!metric.is_counter ||
          std::find(std::begin(kOfStores), std::end(kOfStores), metric.name) == std::end(kOfStores))
        continue;
      std::string name = exported_name(metric);
      CLI_CHECK(name.starts_with("outcore_"));
      name.replace(0, std::string_view("outcore").size(), "outcore_store");
      families->add(name, std::string(metric.help) + ", of one store", true, labels,
                    exported_value(metric, value_of(region.counters, metric.name)));
    }
  }
}

// What nobody publishes is 0 (outcore/sight.h), and not told.
bool is_published(const MetricInfo& metric) {
  return metric.name != "metadata_bytes" && metric.name != "replays" &&
         metric.name != "budget_shrink_ns_max";
}

// Of a buffer its processes have the pages together: no process's figures have them. `wanted`:
// those of the processes that are told, by number.
void add_buffers(const std::map<pid_t, std::set<std::string>>& wanted, bool are_all_wanted,
                 MetricFamilies* families) {
  const Result<std::vector<BufferFacts>> all = list_buffers();
  if (!all) return;
  for (const BufferFacts& buffer : all.value()) {
    const MetricLabels labels{{"buffer", label_text(buffer.name)}};
    bool is_wanted = are_all_wanted;
    for (const auto& [process, names] : wanted) {
      if (!names.contains(buffer.name)) continue;
      is_wanted = true;
      families->add("outcore_buffer_member", "1: this process shares the pages of the buffer",
                    false, {labels.front(), {"pid", std::to_string(process)}}, 1);
    }
    if (!is_wanted) continue;
    const auto add = [&](const char* name, const char* help, uint64_t value) {
      families->add(name, help, false, labels, static_cast<double>(value));
    };
    add("outcore_buffer_limit_bytes", "how much its processes may have in memory together",
        buffer.limit_bytes);
    add("outcore_buffer_used_bytes", "what is in memory, and what its processes have beside it",
        buffer.used_bytes);
    add("outcore_buffer_resident_bytes", "of that, pages of files", buffer.resident_bytes);
    add("outcore_buffer_written_bytes", "of that, written and not yet stored",
        buffer.written_bytes);
    add("outcore_buffer_processes", "its processes", buffer.members.size());
    add("outcore_buffer_files", "files of which it may have pages", buffer.files);
  }
}

std::vector<MetricFamily> families_of_now(const ProcessFilter& filter) {
  MetricFamilies families;
  std::map<pid_t, std::set<std::string>> buffers;
  for (const pid_t process : list_published()) {
    if (filter && !filter(process)) continue;
    const auto runtimes = look_at(process);
    if (!runtimes) continue;  // it has ended
    DirtyBytes dirty;         // of all their stores, one after the other
    if (Result<DirtyBytes> asked = dirty_bytes(process, places_of(runtimes.value())); asked) {
      dirty = std::move(*asked);
      families.add("outcore_dirty_bytes",
                   "what its runtimes have in memory that is in no store yet", false,
                   {{"pid", std::to_string(process)}, {"command", command_of(process)}},
                   static_cast<double>(dirty.all));
    }
    std::span<const std::optional<uint64_t>> dirty_left = dirty.each;
    for (size_t i = 0; i < runtimes.value().size(); ++i) {
      const PublishedRuntime& runtime = runtimes.value()[i];
      const MetricLabels labels{{"pid", std::to_string(process)},
                                {"command", command_of(process)},
                                {"runtime", std::to_string(i)}};
      families.add("outcore_start_time_seconds", "when the runtime began, since 1970", false,
                   labels, static_cast<double>(runtime.started_ns) * 1e-9);
      const Metrics& m = runtime.metrics;
      for (const MetricInfo& metric : metric_list()) {
        if (!is_published(metric)) continue;
        const uint64_t value =
            metric.is_counter ? value_of(m.counters, metric.name) : value_of(m.gauges, metric.name);
        families.add(exported_name(metric), metric.help, metric.is_counter, labels,
                     exported_value(metric, value));
      }
      families.add_latency(m.fault_latency, waited_ns(m.counters), labels);
      add_stores(m, labels, dirty_left, &families);
      dirty_left = dirty_left.subspan(std::min(m.regions.size(), dirty_left.size()));
      if (!runtime.shared_buffer.empty()) buffers[process].insert(runtime.shared_buffer);
    }
  }
  add_buffers(buffers, !filter, &families);
  return families.take();
}

// OpenMetrics names a family of counters without _total, and says where the text ends.
std::string as_open_metrics(const std::string& text) {
  std::istringstream lines(text);
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(std::move(line));
  std::string result;
  for (std::string& line : all) {
    const bool is_about = line.starts_with("# HELP ") || line.starts_with("# TYPE ");
    const size_t end = is_about ? line.find(' ', 7) : std::string::npos;
    if (end != std::string::npos && line.compare(end - 6, 6, "_total") == 0) line.erase(end - 6, 6);
    result += line + "\n";
  }
  return result + "# EOF\n";
}

struct Collector final : prometheus::Collectable {
  explicit Collector(ProcessFilter asked) : filter(std::move(asked)) {}
  std::vector<MetricFamily> Collect() const override { return families_of_now(filter); }
  const ProcessFilter filter;
};

// "9464" or "0.0.0.0:9464", as it is bound; empty: it is none.
std::string address_in(const std::string& where) {
  const size_t colon = where.rfind(':');
  const std::string port = colon == std::string::npos ? where : where.substr(colon + 1);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number > 65535) return "";
  return (colon == std::string::npos ? "127.0.0.1" : where.substr(0, colon)) + ":" + port;
}

constexpr double kIntervalMax = 24 * 3600;

struct Words {
  std::optional<std::string> where;
  std::string format = "prometheus";
  double interval_s = 5;
  std::optional<std::string> process;
};

int run(const Words& words) {
  if (!(words.interval_s > 0 && words.interval_s <= kIntervalMax))
    return report(Error{EINVAL, "--interval: it is a number of seconds above 0, a day at most"});
  ProcessFilter filter;
  if (words.process) {
    const auto wanted = find_process(*words.process);
    if (!wanted) return report(wanted.error());
    if (const auto seen = look_at(wanted.value()); !seen) return report(seen.error());
    filter = [wanted = wanted.value()](pid_t process) { return process == wanted; };
  }
  const MetricsFormat format =
      words.format == "openmetrics" ? MetricsFormat::kOpenMetrics : MetricsFormat::kPrometheus;
  if (!words.where) {
    const std::string text = metrics_text(filter, format);
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) note_failed_output();
    return 0;
  }
  catch_interrupts();
  Result<std::unique_ptr<MetricsExport>> started =
      MetricsExport::start(*words.where, filter, format);
  if (!started) return report(started.error());
  std::fprintf(stderr, "outcore: metrics at %s\n", started.value()->place().c_str());
  while (!is_interrupted()) {
    started.value()->refresh_or_tell();
    for (double left_s = words.interval_s; left_s > 0 && !is_interrupted(); left_s -= 0.1)
      ::usleep(100'000);
  }
  return 0;
}

}  // namespace

struct MetricsExport::Server {
  Server(const std::string& address, ProcessFilter filter)
      : collector(std::make_shared<Collector>(std::move(filter))), exposer(address, 4) {
    exposer.RegisterCollectable(collector);
  }
  std::shared_ptr<Collector> collector;
  prometheus::Exposer exposer;
};

MetricsExport::~MetricsExport() = default;

std::string metrics_text(const ProcessFilter& filter, MetricsFormat format) {
  const std::string text = prometheus::TextSerializer().Serialize(families_of_now(filter));
  return format == MetricsFormat::kOpenMetrics ? as_open_metrics(text) : text;
}

Result<std::unique_ptr<MetricsExport>> MetricsExport::start(const std::string& where,
                                                            ProcessFilter filter,
                                                            MetricsFormat format) {
  std::unique_ptr<MetricsExport> made(new MetricsExport);
  if (const std::string address = address_in(where); !address.empty()) {
    if (format == MetricsFormat::kOpenMetrics)
      return Error{EINVAL, "serve metrics at " + address +
                               ": over HTTP they have Prometheus' form alone: leave out --format, "
                               "or name a file"};
    try {
      made->server_ = std::make_unique<Server>(address, std::move(filter));
      made->place_ = "http://" + address.substr(0, address.rfind(':')) + ":" +
                     std::to_string(made->server_->exposer.GetListeningPorts().at(0)) + "/metrics";
    } catch (const std::exception&) {
      return Error{EADDRINUSE,
                   "serve metrics at " + address +
                       ": the port is not available: name another, or an address of this "
                       "machine"};
    }
    return made;
  }
  // A colon belongs to an address; a file of such a name has a folder before it.
  const bool is_bare = where.find('/') == std::string::npos;
  if (is_bare && (where.find('.') == std::string::npos || where.find(':') != std::string::npos))
    return Error{EINVAL, "metrics to '" + where +
                             "': it is neither a port, as 9464 or 0.0.0.0:9464, nor a path, as "
                             "./metrics.prom"};
  made->place_ = where;
  made->filter_ = std::move(filter);
  made->format_ = format;
  if (Status s = made->refresh(); !s) return Error{s.code(), s.message()};
  return made;
}

Status MetricsExport::refresh() {
  if (server_ != nullptr) return {};
  return write_whole(place_, metrics_text(filter_, format_), "metrics");
}

// A disk that is full now may not be so later.
void MetricsExport::refresh_or_tell() {
  const Status refreshed = refresh();
  if (!refreshed && !has_failed_) report(Error{refreshed.code(), refreshed.message()});
  has_failed_ = !refreshed;
}

void add_export(CommandSyntax& outcore) {
  const auto words = std::make_shared<Words>();
  outcore.add("export", "Metrics of running programs, as Prometheus reads them")
      .option("--metrics", words->where,
              "serve them over HTTP, or write them to a file again and again; else they are "
              "printed once")
      .type("[ADDRESS:]PORT|FILE")
      .option("--interval", words->interval_s, "seconds between two writes of the file (5)")
      .type("SECONDS")
      .option("--format", words->format,
              "of what is printed or written to a file: prometheus or openmetrics")
      .one_of({"prometheus", "openmetrics"})
      .option("--pid", words->process,
              "of this process alone, by number or name (of all of this user)")
      .type("PID")
      .footer(
          "Nobody but this machine can connect unless an address is given, as 0.0.0.0:9464.\n"
          "Exit status: 0 done, or interrupted; 1 the port or file is not available.\n"
          "Examples:\n"
          "  outcore export\n"
          "  outcore export --metrics 9464\n"
          "  outcore export --metrics /var/lib/node_exporter/outcore.prom --interval 15")
      .runs([words] { return run(*words); });
}

}  // namespace outcore::cli
