#include "bench/table.h"

#include <algorithm>

#include "bench/lookup_data.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

using Parts = std::vector<std::vector<Series>>;

constexpr uint64_t kMiB = uint64_t{1} << 20;

const Series* find(const std::vector<Series>& all, const std::string& memory) {
  for (const Series& series : all)
    if (series.memory == memory) return &series;
  return nullptr;
}

RowResult unmeasured(std::string why) { return {{}, {}, std::move(why), false, false}; }

// The better of the mmaps that was not stopped; nullptr if all were.
const Series* better_mmap(const std::vector<Series>& all) {
  const Series* best = nullptr;
  for (const char* name : {"mmap", "mmap-random"}) {
    const Series* const series = find(all, name);
    if (series == nullptr || series->runs.empty() || series->is_stopped()) continue;
    if (best == nullptr || series->median_rate() > best->median_rate()) best = series;
  }
  return best;
}

// Every part: Outcore's rate over the rival's is at least the part's target.
std::function<RowResult(const Parts&)> at_least(std::vector<double> targets, std::string rival) {
  return [targets = std::move(targets), rival = std::move(rival)](const Parts& parts) {
    RowResult result;
    result.is_met = true;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Series* const outcore = find(parts[i], "outcore");
      const Series* const other = rival == "mmaps" ? better_mmap(parts[i]) : find(parts[i], rival);
      if (!result.figure.empty()) result.figure += ", ";
      if (outcore == nullptr) return unmeasured("outcore did not run");
      if (other == nullptr || (other->is_stopped() && !outcore->is_stopped())) {
        result.figure += "the rival did not finish";
        continue;
      }
      const auto ratio = compare(*outcore, *other);
      if (!ratio) {
        result.is_measured = result.is_met = false;
        result.figure += ratio.message();
        continue;
      }
      result.figure += cli::format("%.2f", ratio->value);
      result.is_met = result.is_met && ratio->value >= targets[std::min(i, targets.size() - 1)];
    }
    return result;
  };
}

// p50 of Outcore's misses less the device's, in microseconds.
RowResult judge_miss(const Parts& parts, double target_us) {
  const Series* const outcore = find(parts[0], "outcore");
  const Series* const device = find(parts[0], "direct");
  if (outcore == nullptr || device == nullptr) return unmeasured("did not run");
  const double more = outcore->median_run().p50_us() - device->median_run().p50_us();
  return {{}, {}, cli::format("device + %.1f us", more), more <= target_us, true};
}

// Threads beyond the first part's make it no slower than 0.95 of it: the spread of a quiet machine.
RowResult judge_scaling(const Parts& parts) {
  RowResult result;
  result.is_met = true;
  const double base = find(parts[0], "outcore")->median_rate();
  for (size_t i = 1; i < parts.size(); ++i) {
    const double ratio = find(parts[i], "outcore")->median_rate() / base;
    result.figure += cli::format(i == 1 ? "%.2f" : ", %.2f", ratio);
    result.is_met = result.is_met && ratio >= 0.95;
  }
  return result;
}

// Pages read: mmap with readahead reads more than it faults for, so bytes are what compares.
RowResult judge_loop(const Parts& parts) {
  const Series* const outcore = find(parts[0], "outcore");
  const Series* const mmap = find(parts[0], "mmap-random");
  if (outcore == nullptr || mmap == nullptr || mmap->median_run().fills == 0)
    return unmeasured("did not run");
  const double ratio = static_cast<double>(outcore->median_run().fills) /
                       static_cast<double>(mmap->median_run().fills);
  return {{}, {}, cli::format("%.2f of the fills", ratio), ratio <= 0.4, true};
}

RowResult judge_resident(const Parts& parts) {
  RowResult result;
  result.is_met = true;
  for (const auto& part : parts) {
    const auto ratio = compare(*find(part, "outcore"), *find(part, "dram"));
    if (!ratio) return unmeasured(ratio.message());
    result.figure += (result.figure.empty() ? "" : ", ") + cli::format("%.2f", ratio->value);
    result.is_met = result.is_met && ratio->value >= 0.98;
  }
  return result;
}

RowResult judge_write_back(const Parts& parts) {
  const RunResult& run = find(parts[0], "outcore")->median_run();
  const double dirty = static_cast<double>(run.extra.value("writes", uint64_t{0})) * 4096;
  const double ratio = dirty > 0 ? static_cast<double>(run.written_bytes) / dirty : 0;
  return {{}, {}, cli::format("%.2f of the dirty 4 KiB", ratio), ratio > 0 && ratio <= 1.1, true};
}

RowResult judge_peak(const Parts& parts) {
  RowResult result;
  result.is_met = true;
  for (const auto& part : parts) {
    const RunResult& run = find(part, "outcore")->median_run();
    if (!run.is_limited) return unmeasured("no memory cgroup: run as root");
    const uint64_t allowed = run.budget_bytes + run.extra.value("metadata_bytes", uint64_t{0}) +
                             run.data_bytes / 512 + 16 * kMiB;
    result.figure += (result.figure.empty() ? "" : ", ") +
                     cli::format("%s of %s", cli::format_bytes(run.peak_bytes).c_str(),
                                 cli::format_bytes(allowed).c_str());
    result.is_met = result.is_met && run.peak_bytes <= allowed;
  }
  return result;
}

// Makes rows: what they have in common, and the sizes of a quick or a full table.
class Rows {
 public:
  explicit Rows(const TableOptions& options) : options_(options) {
    base_.repeat = options.is_quick ? 1 : 3;
    base_.is_kept = true;
    base_.size_bytes = options.is_quick ? 256 * kMiB : 1024 * kMiB;
    base_.budget_bytes = base_.size_bytes / 4;
    base_.touches = options.is_quick ? 50'000 : 200'000;
    base_.limit_seconds = 120;
  }
  std::vector<Row> all();

 private:
  Options on(bool is_fast, std::vector<std::string> memories) const {
    Options o = base_;
    o.dir = is_fast ? options_.fast_dir : options_.disk_dir;
    o.memories = std::move(memories);
    return o;
  }
  void add(std::string name, std::string target, bool is_fast, std::vector<Options> parts,
           std::function<RowResult(const Parts&)> judge) {
    rows_.push_back(
        {std::move(name), std::move(target), is_fast, std::move(parts), std::move(judge)});
  }
  std::vector<Options> random_io(bool is_fast, const std::vector<unsigned>& threads,
                                 unsigned writes, const std::string& delivery,
                                 const std::vector<std::string>& memories);
  void add_random();
  void add_scans();
  void add_programs();
  void add_lookups();
  void add_limits();

  TableOptions options_;
  Options base_;
  std::vector<Row> rows_;
};

std::vector<Options> Rows::random_io(bool is_fast, const std::vector<unsigned>& threads,
                                     unsigned writes, const std::string& delivery,
                                     const std::vector<std::string>& memories) {
  std::vector<Options> parts;
  for (const unsigned count : threads) {
    Options o = on(is_fast, memories);
    o.threads = count;
    o.write_percent = writes;
    o.delivery = delivery;
    parts.push_back(o);
  }
  return parts;
}

void Rows::add_random() {
  const std::vector<std::string> both = {"mmap-random", "outcore"};
  add("random reads, in-thread, 1/4/16 threads", "0.75 x mmap-random", true,
      random_io(true, {1, 4, 16}, 0, "in-thread", both), at_least({0.75}, "mmap-random"));
  for (const auto& [frames, target] : {std::pair("private", 7.0), std::pair("shared", 11.0)}) {
    auto parts = random_io(true, {1}, 0, "in-thread", {"direct", "outcore"});
    parts[0].frames = frames;
    add(cli::format("p50 of a miss, %s frames", frames), cli::format("device + %.0f us", target),
        true, parts, [target = target](const Parts& p) { return judge_miss(p, target); });
  }
  add("50 % writes, in-thread, 1/4/16 threads", "1.0 x mmap-random", true,
      random_io(true, {1, 4, 16}, 50, "in-thread", both), at_least({1.0}, "mmap-random"));
  add("random reads, event threads, 1/4/16 threads", "0.35/0.5/0.6 x mmap-random", true,
      random_io(true, {1, 4, 16}, 0, "messages", both), at_least({0.35, 0.5, 0.6}, "mmap-random"));
  for (const bool is_fast : {true, false})
    add(cli::format("64/128/256 threads, %s", is_fast ? "fast device" : "disk"), "as at 16 threads",
        is_fast, random_io(is_fast, {16, 64, 128, 256}, 0, "", {"outcore"}), judge_scaling);
}

void Rows::add_scans() {
  std::vector<Options> strides;
  for (const auto& [stride, is_backward] :
       {std::pair(3U, false), std::pair(17U, false), std::pair(1U, true)}) {
    Options o = on(false, {"mmap", "outcore"});
    o.workload = "scan";
    o.stride = stride;
    o.is_backward = is_backward;
    strides.push_back(o);
  }
  add("every 3rd, every 17th, backward, 4 threads, disk", "2 x mmap", false, strides,
      at_least({2}, "mmap"));
  Options loop = on(true, {"mmap-random", "outcore"});
  loop.workload = "scan";
  loop.budget_bytes = base_.budget_bytes;
  loop.size_bytes = loop.budget_bytes / 5 * 6 / kMiB * kMiB;
  loop.passes = 5;
  loop.threads = 1;
  add("loop over 1.2 x budget, 5 passes", "0.4 of mmap's fills", true, {loop}, judge_loop);
  for (const bool is_fast : {true, false}) {
    Options o = on(is_fast, {"direct", "outcore"});
    o.workload = "scan";
    o.threads = 1;
    const std::string where = is_fast ? ", fast device" : ", disk";
    add("scan of 4 x budget" + where, "0.9 x direct", is_fast, {o}, at_least({0.9}, "direct"));
    o.memories = {"mmap", "outcore"};
    add("scan of 4 x budget" + where, "1.0 x mmap", is_fast, {o}, at_least({1.0}, "mmap"));
  }
}

void Rows::add_programs() {
  const bool is_fast = !options_.fast_dir.empty();
  for (const bool is_tuned : {false, true}) {
    Options sort = on(is_fast, {"mmap", "mmap-random", "outcore"});
    sort.workload = "sort";
    sort.budget_bytes = sort.size_bytes / 2;
    sort.page_bytes = is_tuned ? kMiB : 4096;
    add(is_tuned ? "sort in half its size, 1 MiB pages" : "sort in half its size",
        is_tuned ? "1.5 x the better mmap" : "1.2 x the better mmap", is_fast, {sort},
        at_least({is_tuned ? 1.5 : 1.2}, "mmaps"));
  }
  for (const bool is_tuned : {false, true}) {
    Options bfs = on(is_fast, {"mmap", "mmap-random", "outcore"});
    bfs.workload = "bfs";
    bfs.scale = options_.is_quick ? 19 : 21;
    bfs.budget_bytes = (options_.is_quick ? 64 : 256) * kMiB;
    bfs.page_bytes = is_tuned ? 64 * 1024 : 4096;
    add(is_tuned ? "BFS in half its size, 64 KiB pages" : "BFS in half its size",
        is_tuned ? "1.2 x the better mmap" : "1.0 x the better mmap", is_fast, {bfs},
        at_least({is_tuned ? 1.2 : 1.0}, "mmaps"));
  }
}

void Rows::add_limits() {
  const bool is_fast = !options_.fast_dir.empty();
  std::vector<Options> resident;
  for (const char* workload : {"random-io", "scan", "sort"}) {
    Options o = on(is_fast, {"dram", "outcore"});
    o.workload = workload;
    o.size_bytes = base_.size_bytes / 4;
    o.budget_bytes = base_.size_bytes / 2;
    o.touches = 50'000'000;
    o.passes = 40;
    o.has_latency = false;
    o.is_warm = true;
    resident.push_back(o);
  }
  add("resident data: random-io, scan, sort", "1.00 x dram", is_fast, resident, judge_resident);
  Options write_back = on(is_fast, {"outcore"});
  write_back.distribution = "once";
  write_back.write_percent = 100;
  write_back.page_bytes = 256 * 1024;
  write_back.touches = 10'000;
  add("single writes with 256 KiB pages", "1.1 of the dirty 4 KiB", is_fast, {write_back},
      judge_write_back);
  Options peak = on(is_fast, {"outcore"});
  peak.write_percent = 50;
  Options peak_scan = peak;
  peak_scan.workload = "scan";
  add("peak memory: random-io, scan", "budget + metadata + 1/512 + 16 MiB", is_fast,
      {peak, peak_scan}, judge_peak);
}

// After DI-MMAP, section 6, and DLM, section 5.4 (swap).
void Rows::add_lookups() {
  const auto lookups = [this](bool is_fast, const std::string& structure, unsigned threads,
                              std::vector<std::string> memories) {
    Options o = on(is_fast, std::move(memories));
    o.workload = "map-lookup";
    o.structure = structure;
    o.threads = threads;
    o.touches = base_.touches / 10;
    return o;
  };
  for (const bool is_fast : {true, false})
    for (const std::string& structure : structure_names()) {
      std::vector<Options> parts;
      for (const unsigned threads : {1U, 4U, 16U})
        parts.push_back(lookups(is_fast, structure, threads, {"mmap-random", "outcore"}));
      const double target = is_fast ? 0.8 : 1.0;
      add(cli::format("lookups in a %s, 1/4/16 threads, %s", structure.c_str(),
                      is_fast ? "fast device" : "disk"),
          cli::format("%.1f x mmap-random", target), is_fast, parts,
          at_least({target}, "mmap-random"));
    }
  for (const bool is_fast : {true, false}) {
    std::vector<Options> parts;
    for (const std::string& structure : structure_names())
      parts.push_back(lookups(is_fast, structure, 4, {"swap", "outcore"}));
    add(cli::format("lookups in map, hash, vector beside swap, %s",
                    is_fast ? "fast device" : "disk"),
        "2 x swap", is_fast, parts, at_least({2}, "swap"));
  }
}

std::vector<Row> Rows::all() {
  add_random();
  add_scans();
  add_programs();
  add_lookups();
  add_limits();
  std::erase_if(rows_, [&](const Row& row) {
    return !options_.only.empty() && row.name.find(options_.only) == std::string::npos;
  });
  return rows_;
}

}  // namespace

std::vector<Row> table_rows(const TableOptions& options) { return Rows(options).all(); }

RowResult run_row(const Row& row, const std::function<void(const RunResult&)>& see) {
  Parts parts;
  RowResult result;
  for (const Options& options : row.parts) {
    auto series = run_in_turns(options, see);
    if (!series) {
      result = unmeasured(series.message());
      break;
    }
    parts.push_back(std::move(series).value());
  }
  if (parts.size() == row.parts.size()) result = row.judge(parts);
  result.name = row.name;
  result.target = row.target;
  return result;
}

}  // namespace outcore::bench
