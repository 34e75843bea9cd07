// outcore bench: workloads on data larger than memory, in Outcore and its rivals.
#include <cerrno>
#include <charconv>
#include <memory>

#include "bench/commands/bench_output.h"
#include "bench/graph_workload.h"
#include "bench/nas_class.h"
#include "bench/runner.h"
#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/interrupts.h"
#include "cli/text.h"

namespace outcore::cli {
namespace {

using bench::Options;

// What the command line said, before it is made into Options.
struct Request {
  Options options;
  std::string memory = "mmap,mmap-random,outcore";
  std::string distribution;  // empty: the workload's own
  std::string latency = "auto";
  std::string share = "auto";
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
    RuntimeOptions given;
    given.budget_bytes = o.budget_bytes;
    given.ignore_environment = true;
    const Status s = Runtime::check(given);  // it names the option of a program
    if (!s) return Error{s.code(), "--budget " + text + s.message().substr(s.message().find(": "))};
    return {};
  }
  double percent = 0;
  const char* const end = text.data() + text.size() - 1;
  const auto parsed = std::from_chars(text.data(), end, percent);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(percent > 0 && percent <= 1000))
    return Error{EINVAL, "--budget " + text + " is no share of the data: write 8% or 12.5%"};
  if (bench::is_graph_workload(o.workload) || o.workload == "graph-construct")
    return Error{EINVAL, "--budget " + text + ": " + o.workload +
                             " has no --size that it could be a share of: write bytes, as in 64M"};
  const double bytes = static_cast<double>(o.size_bytes) * percent / 100;
  o.budget_bytes = static_cast<uint64_t>(bytes) / bench::kUnitBytes * bench::kUnitBytes;
  return {};
}

// A class has a size of its own. One that is not there is refused with the other options.
Status resolve_class(Options& o) {
  const auto bytes = bench::nas_class_bytes(o.workload, o.nas_class);
  if (!bytes) return {};
  if (o.size_bytes != Options().size_bytes)
    return Error{EINVAL, "--class " + o.nas_class + " has a size of its own: leave out --size"};
  o.size_bytes = *bytes;
  return {};
}

Status resolve(Request& request) {
  Options& o = request.options;
  if (Status s = resolve_class(o); !s) return s;
  if (Status s = resolve_budget(request); !s) return s;
  o.memories = split(request.memory, ',');
  if (request.memory == "all") {
    o.memories = bench::memory_names();
    // Not all can do everything: sort, bfs and map-lookup need a mapping.
    if (o.workload != "random-io" && o.workload != "scan") std::erase(o.memories, "direct");
    std::erase(o.memories, "swap");  // changes the machine for a while: only if it is named
    std::erase(o.memories, "dram-huge");
    std::erase(o.memories, "mmap-dontneed");
    std::erase(o.memories, "malloc");
    std::erase(o.memories, "outcore-random");
    // Plain memory is each process's own: it cannot be sorted by several.
    if (o.workload == "sort" && o.processes > 1) std::erase(o.memories, "dram");
  }
  if (o.workload == "alloc" && (request.memory == "all" || request.memory == Request().memory))
    o.memories = {"dram", "malloc", "outcore"};
  if (o.workload == "graph-construct" &&
      (request.memory == "all" || request.memory == Request().memory))
    o.memories = {"malloc", "mmap", "outcore"};
  if (request.distribution.empty())
    request.distribution = o.workload == "ycsb" ? "zipf" : "uniform";
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
  if (request.share != "auto" && request.share != "on" && request.share != "off")
    return Error{EINVAL, "--share " + request.share + " is unknown: use one of auto, on or off"};
  // What the experiments of these are about; others have each its slice.
  const bool is_on_one_file =
      o.workload == "matmul" || o.workload == "sort" || o.workload == "kmers";
  o.is_shared =
      request.share == "on" || (request.share == "auto" && is_on_one_file && o.processes > 1);
  // Two clock readings are nothing beside a miss, and much beside a hit.
  o.has_latency =
      request.latency == "on" || (request.latency == "auto" && o.budget_bytes < o.size_bytes);
  return {};
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

CommandSyntax& add_workload(CommandSyntax& bench, const char* name, const char* help,
                            const std::shared_ptr<Request>& request) {
  Request& r = *request;
  Options& o = r.options;
  return bench.add(name, help)
      .option("--budget", r.budget,
              "memory for pages, or a share of --size (8%); rivals get as much (256M)")
      .type("SIZE")
      .option("--threads", o.threads, "threads of each process (4)")
      .option("--memory", r.memory,
              "a list of dram, dram-huge, mmap, mmap-random, mmap-dontneed, swap, direct, malloc, "
              "outcore, outcore-random; or all (mmap,mmap-random,outcore)")
      .size("--page", o.page_bytes, "page size of Outcore, and unit of direct (4k)")
      .option("--store", o.store, "URI or path of the data (a file in --dir)")
      .option("--dir", o.dir, "where the data is made (OUTCORE_BENCH_DIR, TMPDIR, /var/tmp)")
      .flag("--overwrite", o.may_overwrite, "--store may be a file that holds something else")
      .flag("--keep", o.is_kept, "leave the data for the next benchmark")
      .option("--repeat", o.repeat, "runs of each memory, in turns: A B A B (1)")
      .number("--seed", o.seed, "the same seed, the same data and touches (1)")
      .option("--limit", o.limit_seconds, "stop a run that takes longer than these seconds (none)")
      .flag("--warm", o.is_warm, "touch all data before the time starts")
      .flag("--unlimited", o.is_unlimited, "no memory cgroup")
      .option("--policy", o.policy, "Outcore's replacement policy (its default)")
      .option("--delivery", o.delivery, "auto, in-thread, messages, mprotect (its default)")
      .option("--frames", o.frames, "auto, shared, private (its default)")
      .option("--advice", o.advice, "normal, random, sequential (normal)")
      .option(
          "--share", r.share,
          "the processes have one buffer of the whole budget: on, off, auto (several of matmul, "
          "sort, kmers)")
      .flag("--json", r.is_json, "one line of JSON a run")
      .runs([request, name] {
        request->options.workload = name;
        return run(*request);
      });
}

void add_data_workloads(CommandSyntax& bench, const std::shared_ptr<Request>& request) {
  Options& o = request->options;
  add_workload(bench, "random-io", "random touches, each of one 4 KiB unit (after LRIOT)", request)
      .size("--size", o.size_bytes, "bytes of data (1G)")
      .number("--touches", o.touches, "touches of all threads together (200000)")
      .option("--write-percent", o.write_percent, "share of touches that write (0)")
      .option("--distribution", request->distribution,
              "uniform, zipf[:theta], or once: each unit at most once (uniform)")
      .option("--processes", o.processes, "each with a slice of the data (1)")
      .option("--latency", request->latency, "time each touch: auto, on, off (auto)")
      .footer("Example:\n  outcore bench random-io --distribution zipf:0.9 --memory all");
  add_workload(bench, "scan", "sums all data, in order, in one or more passes", request)
      .size("--size", o.size_bytes, "bytes of data (1G)")
      .option("--passes", o.passes, "how often (1)")
      .number("--stride", o.stride, "every n-th unit of 4 KiB (1)")
      .flag("--backward", o.is_backward, "from the end to the beginning")
      .option("--depth", o.depth, "transfers in flight of each thread of direct (4)")
      .footer("Example:\n  outcore bench scan --size 300M --budget 256M --passes 5 --threads 1");
  add_workload(bench, "sort", "parallel quicksort of 64-bit words, in place", request)
      .size("--size", o.size_bytes, "bytes of data (1G)")
      .option("--processes", o.processes, "which sort one file together (1; after NVMalloc)")
      .footer(
          "Examples:\n"
          "  outcore bench sort --size 1G --budget 512M --memory all --limit 120\n"
          "  outcore bench sort --size 1G --budget 512M --processes 4 --threads 1");
}

CommandSyntax& add_graph_workload(CommandSyntax& bench, const char* name, const char* help,
                                  const std::shared_ptr<Request>& request) {
  Options& o = request->options;
  return add_workload(bench, name, help, request)
      .option("--scale", o.scale, "2^scale vertices (18)")
      .option("--edge-factor", o.edge_factor, "edges a vertex (16)")
      .option("--graph", o.graph, "a graph file of `outcore bench ingest` instead")
      .flag("--fully-external", o.is_fully_external,
            "what is kept for each vertex, and queues, are mapped, too");
}

void add_graph_workloads(CommandSyntax& bench, const std::shared_ptr<Request>& request) {
  add_graph_workload(bench, "bfs", "breadth-first search of an R-MAT graph, or of a graph file",
                     request)
      .footer("Example:\n  outcore bench bfs --scale 20 --budget 64M --page 64k");
  add_graph_workload(bench, "components", "connected components of such a graph", request)
      .footer("Example:\n  outcore bench components --scale 20 --budget 64M --fully-external");
  add_graph_workload(bench, "pagerank", "ranks of the vertices of such a graph", request)
      .option("--passes", request->options.loops, "passes over all edges (5)")
      .footer("Example:\n  outcore bench pagerank --scale 20 --budget 64M --memory mmap,outcore");
}

// What published papers measured.
void add_applications(CommandSyntax& bench, const std::shared_ptr<Request>& request) {
  Options& o = request->options;
  add_workload(bench, "images",
               "medians along vectors through images of the sky over time (after UMap)", request)
      .size("--size", o.size_bytes, "bytes of all images (1G)")
      .number("--touches", o.touches, "vectors of all threads together (1000)")
      .footer("Example:\n  outcore bench images --size 4G --budget 1G --threads 8");
  add_workload(bench, "kmers",
               "of which organism reads of DNA are, by a database of k-mers (after LMAT)", request)
      .size("--size", o.size_bytes, "bytes of a hash table of the k-mers (1G)")
      .option("--index", o.index, "hash, or two-level: sorted lists by prefix, smaller (hash)")
      .number("--reads", o.touches, "reads of all threads together (2000)")
      .option("--processes", o.processes, "which tell each its part of the reads (1)")
      .flag("--pin-top", o.is_top_pinned, "the upper of two levels stays in memory (mmap: mlock)")
      .option("--export", o.export_folder,
              "a new folder for genomes, taxonomy, reads and answers, as files of text")
      .flag("--prefetch-lists", o.has_prefetch_lists,
            "the pages of a read are asked for before its k-mers (mmap: MADV_WILLNEED)")
      .footer(
          "Examples:\n"
          "  outcore bench kmers --index two-level --memory mmap-random,outcore\n"
          "  outcore bench kmers --index two-level --pin-top --prefetch-lists --processes 2");
  add_workload(bench, "ycsb",
               "mixes A to F of the Yahoo! Cloud Serving Benchmark on a table of records", request)
      .size("--size", o.size_bytes, "bytes of the table, with its index (1G)")
      .option("--mix", o.mix, "A, B, C, D, E or F, as YCSB has them (B)")
      .option("--distribution", request->distribution,
              "zipf[:theta], scattered over the keys (D: the latest), or uniform (zipf)")
      .number("--touches", o.touches, "operations of all threads together (200000; of E 10000)")
      .option("--latency", request->latency, "time each operation: auto, on, off (auto)")
      .footer("Example:\n  outcore bench ycsb --mix A --distribution uniform --threads 16");
  add_workload(
      bench, "matmul",
      "C = A x B by processes that share B, of which each has a band of C (after NVMalloc)",
      request)
      .size("--size", o.size_bytes, "bytes of B (1G)")
      .option("--processes", o.processes, "each with a band of rows of A and C in memory (1)")
      .option("--order", o.order, "how B is walked: rows or columns (rows)")
      .number("--tile", o.tile, "in blocks of so many numbers a side (0: none)")
      .footer(
          "Example:\n  outcore bench matmul --size 128M --budget 16M --processes 4 --threads 1 "
          "--order columns --tile 512");
}

CommandSyntax& add_nas_workload(CommandSyntax& bench, const char* name, const char* help,
                                const std::shared_ptr<Request>& request) {
  Options& o = request->options;
  return add_workload(bench, name, help, request)
      .size("--size", o.size_bytes, "bytes of all arrays (1G)")
      .option("--class", o.nas_class, "S, W, A, B or C of the benchmarks, instead of --size");
}

// The NAS Parallel Benchmarks that DLM was measured with.
void add_nas_workloads(CommandSyntax& bench, const std::shared_ptr<Request>& request) {
  Options& o = request->options;
  add_nas_workload(bench, "is", "ranks of integer keys, by buckets (NAS Parallel Benchmarks)",
                   request)
      .option("--passes", o.loops, "how often all keys are ranked (10)")
      .footer("Example:\n  outcore bench is --class A --budget 30% --memory dram,outcore");
  add_nas_workload(bench, "cg",
                   "an eigenvalue of a sparse matrix by conjugate gradients (NAS Parallel "
                   "Benchmarks)",
                   request)
      .option("--passes", o.loops, "steps of the power iteration (4; of a class as it has)")
      .footer("Example:\n  outcore bench cg --class A --budget 50% --memory mmap,outcore");
  add_nas_workload(bench, "ft",
                   "a diffusion equation by 3-D Fourier transforms (NAS Parallel Benchmarks)",
                   request)
      .option("--passes", o.loops, "steps in time (6; of a class as it has)")
      .footer("Example:\n  outcore bench ft --class A --budget 50% --page 64k --memory outcore");
}

void add_three_parts(CommandSyntax& bench, const std::shared_ptr<Request>& request) {
  Options& o = request->options;
  add_workload(bench, "three-parts",
               "one file of records looked up at random, sorted runs, and a log, at once", request)
      .size("--size", o.size_bytes, "bytes of data (1G)")
      .number("--touches", o.touches, "touches of all threads together (200000)")
      .footer("Example:\n  outcore bench three-parts --memory mmap,mmap-random,outcore");
}

void add_structure_workloads(CommandSyntax& bench, const std::shared_ptr<Request>& request) {
  Options& o = request->options;
  add_workload(bench, "alloc", "allocates and frees blocks of mixed sizes, in heaps", request)
      .size("--size", o.size_bytes, "bytes in live blocks, about (1G)")
      .number("--blocks", o.touches, "allocations of all threads together (4000000)")
      .footer(
          "dram is the same allocator in ordinary memory, malloc the program's own.\n"
          "Example:\n  outcore bench alloc --size 128M --budget 512M --threads 8");
  add_workload(bench, "map-lookup",
               "lookups in one std::map, hash map or sorted vector (after DI-MMAP)", request)
      .size("--size", o.size_bytes, "bytes of data (1G)")
      .option("--structure", o.structure, "map, hash, vector (map)")
      .number("--touches", o.touches, "lookups of all threads together (20000)")
      .option("--latency", request->latency, "time each lookup: auto, on, off (auto)")
      .footer(
          "Example:\n  outcore bench map-lookup --structure hash --memory "
          "mmap-random,outcore,swap");
  add_workload(bench, "stream", "COPY, SCALE, ADD, TRIAD over three arrays (STREAM)", request)
      .size("--size", o.size_bytes, "bytes of the three arrays (1G)")
      .option("--passes", o.loops, "how often; the first is not counted (10)")
      .footer(
          "Example:\n  outcore bench stream --memory outcore --budget 8% --store "
          "redis://node-1:7000/s");
  add_workload(bench, "jacobi", "Poisson's equation by a stencil of 19 points (Himeno)", request)
      .size("--size", o.size_bytes, "bytes of the fourteen arrays (1G)")
      .option("--passes", o.loops, "loops over the grid (4)")
      .footer("Example:\n  outcore bench jacobi --size 2G --budget 10% --memory dram,outcore");
  add_workload(bench, "graph-construct",
               "adjacency lists of an R-MAT graph, edge by edge, in a heap that outlives the "
               "program",
               request)
      .option("--scale", o.scale, "2^scale vertices (18)")
      .option("--edge-factor", o.edge_factor, "edges a vertex (16)")
      .footer(
          "malloc is the standard library's containers in memory, mmap a managed_mapped_file of\n"
          "Boost.Interprocess, outcore a PersistentHeap with default settings.\n"
          "Example:\n  outcore bench graph-construct --scale 21 --budget 512M --memory "
          "mmap,outcore");
}

}  // namespace

void add_bench(CommandSyntax& outcore) {
  const auto request = std::make_shared<Request>();
  CommandSyntax& bench =
      outcore.add("bench", "Measure Outcore and its rivals, side by side, verified");
  bench.footer(
      "Examples:\n"
      "  outcore bench random-io --size 2G --budget 512M --threads 16 --write-percent 50\n"
      "  outcore bench scan --size 1G --budget 256M --stride 17 --memory mmap,outcore --repeat 3\n"
      "  outcore bench sort --size 1G --budget 512M --page 1M --json\n"
      "  outcore bench bfs --scale 21 --budget 256M\n"
      "  outcore bench map-lookup --structure hash --threads 16\n"
      "  outcore bench random-io --size 64M --budget 4M --limit 60    # no rival beyond a minute\n"
      "  outcore bench compare after.json before.json\n"
      "  outcore bench report runs.json");
  add_data_workloads(bench, request);
  add_graph_workloads(bench, request);
  add_structure_workloads(bench, request);
  add_nas_workloads(bench, request);
  add_three_parts(bench, request);
  add_applications(bench, request);
  add_bench_tools(bench);
  add_bench_report(bench);
  add_bench_table(bench);
  add_bench_arrays(bench);
  add_bench_checkpoint(bench);
}

}  // namespace outcore::cli
