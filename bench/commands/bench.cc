// outcore bench: workloads on data larger than memory, in Outcore and its rivals.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <memory>

#include "bench/commands/bench_output.h"
#include "bench/runner.h"
#include "bench/table.h"
#include "cli/command.h"
#include "cli/interrupts.h"
#include "cli/text.h"

namespace outcore::cli {
namespace {

using bench::Options;

// What the command line said, before it is made into Options.
struct Request {
  Options options;
  std::string memory = "mmap,mmap-random,outcore";
  std::string distribution = "uniform";
  std::string latency = "auto";
  std::string budget;  // "8%": of --size
  bool is_json = false;
};

// "256M", or a share of the data, as in "8%".
Status resolve_budget(Request& request) {
  Options& o = request.options;
  const std::string& text = request.budget;
  if (text.empty()) return {};
  if (!text.ends_with('%')) {
    const Result<uint64_t> bytes = parse_size(text);
    if (!bytes) return Error{EINVAL, "--budget: " + bytes.message() + ", or 8% of --size"};
    o.budget_bytes = bytes.value();
    return {};
  }
  double percent = 0;
  const char* const end = text.data() + text.size() - 1;
  const auto parsed = std::from_chars(text.data(), end, percent);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(percent > 0 && percent <= 1000))
    return Error{EINVAL, "--budget " + text + " is no share of the data: write 8% or 12.5%"};
  if (o.workload == "bfs" || o.workload == "graph-construct")
    return Error{EINVAL, "--budget " + text + ": " + o.workload +
                             " has no --size that it could be a share of: write bytes, as in 64M"};
  const double bytes = static_cast<double>(o.size_bytes) * percent / 100;
  o.budget_bytes = static_cast<uint64_t>(bytes) / bench::kUnitBytes * bench::kUnitBytes;
  return {};
}

Status resolve(Request& request) {
  if (Status s = resolve_budget(request); !s) return s;
  Options& o = request.options;
  o.memories = split(request.memory, ',');
  if (request.memory == "all") {
    o.memories = bench::memory_names();
    // Not all can do everything: sort, bfs and map-lookup need a mapping.
    if (o.workload != "random-io" && o.workload != "scan") std::erase(o.memories, "direct");
    std::erase(o.memories, "swap");  // changes the machine for a while: only if it is named
    std::erase(o.memories, "dram-huge");
    std::erase(o.memories, "malloc");
    std::erase(o.memories, "outcore-random");
  }
  if (o.workload == "alloc" && (request.memory == "all" || request.memory == Request().memory))
    o.memories = {"dram", "malloc", "outcore"};
  if (o.workload == "graph-construct" &&
      (request.memory == "all" || request.memory == Request().memory))
    o.memories = {"malloc", "mmap", "outcore"};
  const size_t colon = request.distribution.find(':');
  o.distribution = request.distribution.substr(0, colon);
  if (colon != std::string::npos && (o.distribution == "uniform" || o.distribution == "once"))
    return Error{EINVAL, "distribution '" + request.distribution + "' has a number too many: use " +
                             o.distribution + ", or zipf:0.99"};
  if (colon != std::string::npos) {
    char* end = nullptr;
    const std::string theta = request.distribution.substr(colon + 1);
    o.theta = std::strtod(theta.c_str(), &end);
    if (theta.empty() || *end != 0) o.theta = 0;  // which check_options() refuses
  }
  if (request.latency != "auto" && request.latency != "on" && request.latency != "off")
    return Error{EINVAL,
                 "--latency " + request.latency + " is unknown: use one of auto, on or off"};
  // Two clock readings are nothing beside a miss, and much beside a hit.
  o.has_latency =
      request.latency == "on" || (request.latency == "auto" && o.budget_bytes < o.size_bytes);
  return {};
}

// A part of a name that no row has is told before the file of all runs is emptied.
void check_rows(CLI::App& table) {
  table.get_option("--only")->check([](const std::string& text) {
    bench::TableOptions options;
    options.only = text;
    return bench::table_rows(options).empty()
               ? "no row has '" + text + "' in its name: use a part of one, as in sort or scan"
               : std::string();
  });
}

int run(Request& request) {
  if (Status s = resolve(request); !s) return report(s.error());
  catch_interrupts();
  BenchOutput output(request.is_json);
  auto all = bench::run_in_turns(request.options, [&](const auto& r) { output.run(r); });
  if (!all) return report(all.error());
  output.summary(*all);
  return 0;
}

void add_common(CLI::App& app, Request& r) {
  Options& o = r.options;
  app.add_option("--budget", r.budget,
                 "memory for pages, or a share of --size (8%); rivals get as much (256M)")
      ->type_name("SIZE");
  app.add_option("--threads", o.threads, "threads of each process (4)");
  app.add_option("--memory", r.memory,
                 "a list of dram, dram-huge, mmap, mmap-random, swap, direct, malloc, outcore, "
                 "outcore-random; "
                 "or all "
                 "(mmap,mmap-random,outcore)");
  add_bytes(app, "--page", o.page_bytes, "page size of Outcore, and unit of direct (4k)");
  app.add_option("--store", o.store, "URI or path of the data (a file in --dir)");
  app.add_option("--dir", o.dir, "where the data is made (OUTCORE_BENCH_DIR, TMPDIR, /var/tmp)");
  app.add_flag("--overwrite", o.may_overwrite, "--store may be a file that holds something else");
  app.add_flag("--keep", o.is_kept, "leave the data for the next benchmark");
  app.add_option("--repeat", o.repeat, "runs of each memory, in turns: A B A B (1)");
  add_number(app, "--seed", o.seed, "the same seed, the same data and touches (1)");
  app.add_option("--limit", o.limit_seconds,
                 "stop a run that takes longer than these seconds (none)");
  app.add_flag("--warm", o.is_warm, "touch all data before the time starts");
  app.add_flag("--unlimited", o.is_unlimited, "no memory cgroup");
  app.add_option("--policy", o.policy, "Outcore's replacement policy (its default)");
  app.add_option("--delivery", o.delivery, "auto, in-thread, messages, mprotect (its default)");
  app.add_option("--frames", o.frames, "auto, shared, private (its default)");
  app.add_option("--advice", o.advice, "normal, random, sequential (normal)");
  app.add_flag("--json", r.is_json, "one line of JSON a run");
}

CLI::App* add_workload(CLI::App& bench, const std::string& name, const std::string& help,
                       const std::shared_ptr<Request>& request, int& status) {
  CLI::App* const app = bench.add_subcommand(name, help);
  add_common(*app, *request);
  app->callback([request, name, &status] {
    request->options.workload = name;
    status = run(*request);
  });
  return app;
}

void add_graph_construct(CLI::App& bench, const std::shared_ptr<Request>& request, int& status) {
  CLI::App* const graph =
      add_workload(bench, "graph-construct",
                   "adjacency lists of an R-MAT graph, edge by edge, in a heap that "
                   "outlives the program",
                   request, status);
  graph->add_option("--scale", request->options.scale, "2^scale vertices (18)");
  graph->add_option("--edge-factor", request->options.edge_factor, "edges a vertex (16)");
  graph->footer(
      "malloc is the standard library's containers in memory, mmap a managed_mapped_file of\n"
      "Boost.Interprocess, outcore a PersistentHeap with default settings.\n"
      "Example:\n  outcore bench graph-construct --scale 21 --budget 512M --memory mmap,outcore");
}

void add_alloc(CLI::App& bench, const std::shared_ptr<Request>& request, int& status) {
  CLI::App* const alloc = add_workload(
      bench, "alloc", "allocates and frees blocks of mixed sizes, in heaps", request, status);
  add_bytes(*alloc, "--size", request->options.size_bytes, "bytes in live blocks, about (1G)");
  add_number(*alloc, "--blocks", request->options.touches,
             "allocations of all threads together (4000000)");
  alloc->footer(
      "dram is the same allocator in ordinary memory, malloc the program's own.\n"
      "Example:\n  outcore bench alloc --size 128M --budget 512M --threads 8");
}

void add_kernels(CLI::App& bench, const std::shared_ptr<Request>& request, int& status) {
  Options& o = request->options;
  CLI::App* const stream = add_workload(
      bench, "stream", "COPY, SCALE, ADD, TRIAD over three arrays (STREAM)", request, status);
  add_bytes(*stream, "--size", o.size_bytes, "bytes of the three arrays (1G)");
  stream->add_option("--passes", o.loops, "how often; the first is not counted (10)");
  stream->footer(
      "Example:\n  outcore bench stream --memory outcore --budget 8% --store "
      "redis://node-1:7000/s");
  CLI::App* const jacobi = add_workload(
      bench, "jacobi", "Poisson's equation by a stencil of 19 points (Himeno)", request, status);
  add_bytes(*jacobi, "--size", o.size_bytes, "bytes of the fourteen arrays (1G)");
  jacobi->add_option("--passes", o.loops, "loops over the grid (4)");
  jacobi->footer("Example:\n  outcore bench jacobi --size 2G --budget 10% --memory dram,outcore");
}

void add_map_lookup(CLI::App& bench, const std::shared_ptr<Request>& request, int& status) {
  CLI::App* const lookup = add_workload(
      bench, "map-lookup", "lookups in one std::map, hash map or sorted vector (after DI-MMAP)",
      request, status);
  add_bytes(*lookup, "--size", request->options.size_bytes, "bytes of data (1G)");
  lookup->add_option("--structure", request->options.structure, "map, hash, vector (map)");
  add_number(*lookup, "--touches", request->options.touches,
             "lookups of all threads together (20000)");
  lookup->add_option("--latency", request->latency, "time each lookup: auto, on, off (auto)");
  lookup->footer(
      "Example:\n  outcore bench map-lookup --structure hash --memory mmap-random,outcore,swap");
}

}  // namespace

void add_bench(CLI::App& app, int& status) {
  auto request = std::make_shared<Request>();
  Options& o = request->options;
  CLI::App* const bench =
      app.add_subcommand("bench", "Measure Outcore and its rivals, side by side, verified");
  bench->require_subcommand(1);
  bench->footer(
      "Examples:\n"
      "  outcore bench random-io --size 2G --budget 512M --threads 16 --write-percent 50\n"
      "  outcore bench scan --size 1G --budget 256M --stride 17 --memory mmap,outcore --repeat 3\n"
      "  outcore bench sort --size 1G --budget 512M --page 1M --json\n"
      "  outcore bench bfs --scale 21 --budget 256M\n"
      "  outcore bench map-lookup --structure hash --threads 16\n"
      "  outcore bench random-io --size 64M --budget 4M --limit 60    # no rival beyond a minute\n"
      "  outcore bench compare after.json before.json\n"
      "  outcore bench report runs.json");

  CLI::App* const random = add_workload(
      *bench, "random-io", "random touches, each of one 4 KiB unit (after LRIOT)", request, status);
  add_bytes(*random, "--size", o.size_bytes, "bytes of data (1G)");
  add_number(*random, "--touches", o.touches, "touches of all threads together (200000)");
  random->add_option("--write-percent", o.write_percent, "share of touches that write (0)");
  random->add_option("--distribution", request->distribution,
                     "uniform, zipf[:theta], or once: each unit at most once (uniform)");
  random->add_option("--processes", o.processes, "each with a slice of the data (1)");
  random->add_option("--latency", request->latency, "time each touch: auto, on, off (auto)");
  random->footer("Example:\n  outcore bench random-io --distribution zipf:0.9 --memory all");

  CLI::App* const scan = add_workload(
      *bench, "scan", "sums all data, in order, in one or more passes", request, status);
  add_bytes(*scan, "--size", o.size_bytes, "bytes of data (1G)");
  scan->add_option("--passes", o.passes, "how often (1)");
  add_number(*scan, "--stride", o.stride, "every n-th unit of 4 KiB (1)");
  scan->add_flag("--backward", o.is_backward, "from the end to the beginning");
  scan->add_option("--depth", o.depth, "transfers in flight of each thread of direct (4)");
  scan->footer("Example:\n  outcore bench scan --size 300M --budget 256M --passes 5 --threads 1");

  CLI::App* const sort =
      add_workload(*bench, "sort", "parallel quicksort of 64-bit words, in place", request, status);
  add_bytes(*sort, "--size", o.size_bytes, "bytes of data (1G)");
  sort->footer("Example:\n  outcore bench sort --size 1G --budget 512M --memory all --limit 120");

  CLI::App* const bfs = add_workload(
      *bench, "bfs", "breadth-first search of an R-MAT graph, or of a graph file", request, status);
  bfs->add_option("--scale", o.scale, "2^scale vertices (18)");
  bfs->add_option("--edge-factor", o.edge_factor, "edges a vertex (16)");
  bfs->add_option("--graph", o.graph, "a graph file of `outcore bench ingest` instead");
  bfs->add_flag("--fully-external", o.is_fully_external, "the levels are mapped, too");
  bfs->footer("Example:\n  outcore bench bfs --scale 20 --budget 64M --page 64k");

  add_alloc(*bench, request, status);
  add_map_lookup(*bench, request, status);
  add_kernels(*bench, request, status);
  add_graph_construct(*bench, request, status);

  add_bench_tools(*bench, status);
  add_bench_report(*bench, status);
  add_bench_table(*bench, status);
  add_bench_arrays(*bench, status);
  add_bench_checkpoint(*bench, status);
  check_rows(*bench->get_subcommand("table"));
}

}  // namespace outcore::cli
