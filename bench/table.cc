#include "bench/table.h"

#include <algorithm>

#include "bench/data.h"
#include "bench/judges.h"
#include "bench/lookup_data.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

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
           Judge judge) {
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
  void add_readahead();
  void add_clusters();

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

// Guesses must cost nothing lasting, whatever the program does and with however many threads.
void Rows::add_readahead() {
  const bool is_fast = !options_.fast_dir.empty();
  const auto beside_none = [&](const std::string& what, Options o) {
    o.size_bytes = 256 * kMiB;
    o.budget_bytes = 64 * kMiB;
    o.scale = 19;
    o.has_latency = false;
    std::vector<Options> parts;
    for (const unsigned threads : {1U, 4U, 16U, 48U, 96U, 192U}) {
      o.threads = threads;
      parts.push_back(o);
    }
    add("readahead beside none, 1/4/16/48/96/192 threads: " + what, "0.9 of the speed, 1.2 x bytes",
        is_fast, parts, judge_readahead);
  };
  Options o = on(is_fast, {"outcore-random", "outcore"});
  o.touches = 100'000;
  beside_none("random reads", o);
  o.write_percent = 50;
  beside_none("50 % writes", o);
  o.write_percent = 0;
  o.distribution = "zipf";
  beside_none("skewed reads", o);
  o.workload = "scan";
  o.passes = 4;  // or little but the start of the threads is seen
  beside_none("scan", o);
  o.stride = 3;
  beside_none("every 3rd", o);
  o.stride = 1;
  o.is_backward = true;
  beside_none("backward", o);
  o.is_backward = false;
  o.workload = "sort";
  beside_none("sort", o);
  o.workload = "bfs";
  beside_none("BFS", o);
  o.workload = "map-lookup";
  o.touches = 40'000;
  for (const std::string& structure : structure_names()) {
    o.structure = structure;
    beside_none("lookups in a " + structure, o);
  }
}

// What misses bring in: of data that fit, of parts that want different things, and of single pages.
void Rows::add_clusters() {
  for (const bool is_fast : {false, true}) {
    const std::string where = is_fast ? ", fast device" : ", disk";
    std::vector<Options> fits, parts;
    for (const unsigned threads : {1U, 4U}) {
      Options o = on(is_fast, {"mmap", "mmap-random", "outcore"});
      o.threads = threads;
      o.has_latency = false;
      o.workload = "three-parts";
      parts.push_back(o);
      o.workload = "random-io";
      o.size_bytes = 90 * kMiB;
      o.budget_bytes = 112 * kMiB;
      o.touches = 100'000;
      fits.push_back(o);
    }
    add("fits and cold, random, 1/4 threads" + where, "1.0 x the better mmap", is_fast, fits,
        at_least({1.0}, "mmaps"));
    add("three parts of a file, 1/4 threads" + where, "1.0 x the better mmap", is_fast, parts,
        at_least({1.0}, "mmaps"));
  }
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
  add_readahead();
  add_clusters();
  std::erase_if(rows_, [&](const Row& row) {
    return !options_.only.empty() && row.name.find(options_.only) == std::string::npos;
  });
  return rows_;
}

// Whether both work on the same file, if they are in the same folder.
bool has_same_data(const Options& a, const Options& b) {
  const auto kind = [](const Options& o) {
    return o.workload == "scan" ? "random-io" : o.workload;
  };
  return kind(a) == kind(b) && a.size_bytes == b.size_bytes && a.scale == b.scale &&
         a.structure == b.structure;
}

}  // namespace

std::vector<Row> table_rows(const TableOptions& options) { return Rows(options).all(); }

RowResult RowRunner::run(const Row& row, const std::function<void(const RunResult&)>& see) {
  Parts parts;
  RowResult result;
  for (const Options& options : row.parts) {
    if (!before_ || !has_same_data(*before_, options)) Data::remove_kept();
    before_ = options;
    auto series = run_in_turns(options, see);
    if (!series) {
      result = {{}, {}, series.message(), false, false};
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
