// outcore bench: workloads on data larger than memory, in Outcore and its rivals.
#include <memory>

#include "bench/commands/bench_output.h"
#include "bench/commands/bench_request.h"
#include "bench/runner.h"
#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/interrupts.h"

namespace outcore::cli {
namespace {

using bench::Options;

int run(BenchRequest& request) {
  if (Status s = request.resolve(); !s) return report(s.error());
  catch_interrupts();
  BenchOutput output(request.is_json);
  auto all = bench::run_in_turns(request.options, [&](const auto& r) { output.run(r); });
  if (!all) return report(all.error());
  output.summary(*all);
  return 0;
}

CommandSyntax& add_workload(CommandSyntax& bench, const char* name, const char* help,
                            const std::shared_ptr<BenchRequest>& request) {
  BenchRequest& r = *request;
  Options& o = r.options;
  return bench.add(name, help)
      .option("--budget", r.budget,
              "memory for pages, or a share of --size (8%); rivals get as much (256M)")
      .type("SIZE")
      .option("--threads", o.threads, "threads of each process (4)")
      .option("--memory", r.memory,
              "a list of dram, dram-huge, mmap, mmap-random, mmap-dontneed, swap, direct, malloc, "
              "two-pass, outcore, outcore-random; or all (mmap,mmap-random,outcore)")
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
          "sort, kmers, and that --overlap)")
      .flag("--reuse", o.has_reuse,
            "record outcore: how much is touched between two touches of a page; with --json")
      .flag("--json", r.is_json, "one line of JSON a run")
      .runs([request, name] {
        request->options.workload = name;
        return run(*request);
      });
}

void add_data_workloads(CommandSyntax& bench, const std::shared_ptr<BenchRequest>& request) {
  Options& o = request->options;
  add_workload(bench, "random-io", "random touches, each of one 4 KiB unit (after LRIOT)", request)
      .size("--size", o.size_bytes, "bytes of data (1G)")
      .number("--touches", o.touches, "touches of all threads together (200000)")
      .at_least(1)
      .option("--write-percent", o.write_percent, "share of touches that write (0)")
      .option("--distribution", request->distribution,
              "uniform, zipf[:theta], or once: each unit at most once (uniform)")
      .option("--processes", o.processes, "each with a slice of the data (1)")
      .flag("--overlap", o.is_overlapping, "each process touches all of the data instead")
      .option("--latency", request->latency, "time each touch: auto, on, off (auto)")
      .footer(
          "Examples:\n"
          "  outcore bench random-io --distribution zipf:0.9 --memory all\n"
          "  outcore bench random-io --processes 4 --threads 4 --overlap --write-percent 50");
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
          "  outcore bench sort --size 1G --budget 512M --processes 4 --threads 1 --memory "
          "two-pass,outcore");
}

CommandSyntax& add_graph_workload(CommandSyntax& bench, const char* name, const char* help,
                                  const std::shared_ptr<BenchRequest>& request) {
  Options& o = request->options;
  return add_workload(bench, name, help, request)
      .option("--scale", o.scale, "2^scale vertices (18)")
      .option("--edge-factor", o.edge_factor, "edges a vertex (16)")
      .option("--graph", o.graph, "a graph file of `outcore bench ingest` instead")
      .flag("--fully-external", o.is_fully_external,
            "what is kept for each vertex, and queues, are mapped, too");
}

void add_graph_workloads(CommandSyntax& bench, const std::shared_ptr<BenchRequest>& request) {
  add_graph_workload(bench, "bfs", "breadth-first search of an R-MAT graph, or of a graph file",
                     request)
      .flag("--asynchronous", request->options.is_asynchronous,
            "no thread waits for a level to end (after HavoqGT)")
      .footer(
          "Examples:\n"
          "  outcore bench bfs --scale 20 --budget 64M --page 64k\n"
          "  outcore bench bfs --scale 20 --budget 64M --asynchronous --fully-external");
  add_graph_workload(bench, "components", "connected components of such a graph", request)
      .footer("Example:\n  outcore bench components --scale 20 --budget 64M --fully-external");
  add_graph_workload(bench, "pagerank", "ranks of the vertices of such a graph", request)
      .option("--passes", request->options.loops, "passes over all edges (5)")
      .at_least(1)
      .footer("Example:\n  outcore bench pagerank --scale 20 --budget 64M --memory mmap,outcore");
}

constexpr const char* kTableAllocatorHelp =
    "own: --table heap is outcore's over mmap's mapping, too; or auto: mmap's is Boost's (auto)";

// What published papers measured.
void add_applications(CommandSyntax& bench, const std::shared_ptr<BenchRequest>& request) {
  Options& o = request->options;
  add_workload(bench, "images",
               "medians along vectors through images of the sky over time (after UMap)", request)
      .size("--size", o.size_bytes, "bytes of all images (1G)")
      .number("--touches", o.touches, "vectors of all threads together (1000)")
      .at_least(1)
      .footer("Example:\n  outcore bench images --size 4G --budget 1G --threads 8");
  add_workload(bench, "kmers",
               "of which organism reads of DNA are, by a database of k-mers (after LMAT)", request)
      .size("--size", o.size_bytes, "bytes of a hash table of the k-mers (1G)")
      .option("--index", request->index,
              "hash, or two-level: sorted lists by prefix, smaller (hash)")
      .option(
          "--table", o.table,
          "records, all in one file that is mapped; or heap, two levels in a heap that outlives "
          "the program (records)")
      .option("--allocator", o.allocator, kTableAllocatorHelp)
      .option("--genomes", request->genomes,
              "real ones instead, of FOLDER/GENUS/SPECIES/STRAIN.fna; the size is theirs")
      .type("FOLDER")
      .number("--reads", request->reads, "reads of all threads together (2000)")
      .at_least(1)
      .flag("--lookups", o.is_of_lookups, "no reads: k-mers are looked up, each by itself")
      .number("--touches", o.touches, "look-ups of all threads together (200000)")
      .at_least(1)
      .option("--processes", o.processes, "each of which classifies a part of the reads (1)")
      .flag("--pin-top", o.is_top_pinned, "the upper of two levels stays in memory (mmap: mlock)")
      .option("--export", o.export_folder,
              "a new folder for genomes, taxonomy, reads and answers, as files of text")
      .flag("--prefetch-lists", o.has_prefetch_lists,
            "the pages of a read are asked for before its k-mers (mmap: MADV_WILLNEED)")
      .footer(
          "Examples:\n"
          "  outcore bench kmers --index two-level --memory mmap-random,outcore\n"
          "  outcore bench kmers --index two-level --pin-top --prefetch-lists --processes 2\n"
          "  outcore bench kmers --table heap --memory malloc,mmap,outcore\n"
          "  outcore bench kmers --lookups --threads 16 --memory mmap,mmap-random,outcore");
  add_workload(bench, "ycsb",
               "mixes A to F of the Yahoo! Cloud Serving Benchmark on a table of records", request)
      .size("--size", o.size_bytes, "bytes of the table, with its index (1G)")
      .option("--mix", o.mix, "A, B, C, D, E or F, as YCSB has them (B)")
      .option("--table", o.table,
              "records, in a file with an index; or heap, a hash table in a heap that outlives the "
              "program (records)")
      .option("--allocator", o.allocator, kTableAllocatorHelp)
      .option("--distribution", request->distribution,
              "zipf[:theta], scattered over the keys (D: the latest), or uniform (zipf)")
      .number("--touches", o.touches, "operations of all threads together (200000; of E 10000)")
      .at_least(1)
      .option("--latency", request->latency, "time each operation: auto, on, off (auto)")
      .footer(
          "Of --table heap, malloc is the standard library's in memory, mmap Boost's in a\n"
          "managed_mapped_file, outcore a hash_map in a PersistentHeap.\n"
          "Examples:\n"
          "  outcore bench ycsb --mix A --distribution uniform --threads 16\n"
          "  outcore bench ycsb --table heap --mix F --memory malloc,mmap,outcore");
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
                                const std::shared_ptr<BenchRequest>& request) {
  Options& o = request->options;
  return add_workload(bench, name, help, request)
      .size("--size", o.size_bytes, "bytes of all arrays (1G)")
      .option("--class", o.nas_class, "S, W, A, B or C of the benchmarks, instead of --size");
}

// The NAS Parallel Benchmarks that DLM was measured with.
void add_nas_workloads(CommandSyntax& bench, const std::shared_ptr<BenchRequest>& request) {
  Options& o = request->options;
  add_nas_workload(bench, "is", "ranks of integer keys, by buckets (NAS Parallel Benchmarks)",
                   request)
      .option("--passes", o.loops, "how often all keys are ranked (10)")
      .at_least(1)
      .footer("Example:\n  outcore bench is --class A --budget 30% --memory dram,outcore");
  add_nas_workload(bench, "cg",
                   "an eigenvalue of a sparse matrix by conjugate gradients (NAS Parallel "
                   "Benchmarks)",
                   request)
      .option("--passes", o.loops, "steps of the power iteration (4; of a class as it has)")
      .at_least(1)
      .footer("Example:\n  outcore bench cg --class A --budget 50% --memory mmap,outcore");
  add_nas_workload(bench, "ft",
                   "a diffusion equation by 3-D Fourier transforms (NAS Parallel Benchmarks)",
                   request)
      .option("--passes", o.loops, "steps in time (6; of a class as it has)")
      .at_least(1)
      .footer("Example:\n  outcore bench ft --class A --budget 50% --page 64k --memory outcore");
}

void add_three_parts(CommandSyntax& bench, const std::shared_ptr<BenchRequest>& request) {
  Options& o = request->options;
  add_workload(bench, "three-parts",
               "one file of records looked up at random, sorted runs, and a log, at once", request)
      .size("--size", o.size_bytes, "bytes of data (1G)")
      .number("--touches", o.touches, "touches of all threads together (200000)")
      .at_least(1)
      .footer("Example:\n  outcore bench three-parts --memory mmap,mmap-random,outcore");
}

void add_structure_workloads(CommandSyntax& bench, const std::shared_ptr<BenchRequest>& request) {
  Options& o = request->options;
  add_workload(bench, "alloc", "allocates and frees blocks of mixed sizes, in heaps", request)
      .size("--size", o.size_bytes, "bytes in live blocks, about (1G)")
      .number("--blocks", o.touches, "allocations of all threads together (4000000)")
      .at_least(1)
      .footer(
          "dram is the same allocator in ordinary memory, malloc the program's own.\n"
          "Example:\n  outcore bench alloc --size 128M --budget 512M --threads 8");
  add_workload(bench, "map-lookup",
               "lookups in one std::map, hash map or sorted vector (after DI-MMAP)", request)
      .size("--size", o.size_bytes, "bytes of data (1G)")
      .option("--structure", o.structure, "map, hash, vector (map)")
      .number("--touches", o.touches, "lookups of all threads together (20000)")
      .at_least(1)
      .option("--latency", request->latency, "time each lookup: auto, on, off (auto)")
      .footer(
          "Example:\n  outcore bench map-lookup --structure hash --memory "
          "mmap-random,outcore,swap");
  add_workload(bench, "stream", "COPY, SCALE, ADD, TRIAD over three arrays (STREAM)", request)
      .size("--size", o.size_bytes, "bytes of the three arrays (1G)")
      .option("--passes", o.loops, "how often; the first is not counted (10)")
      .at_least(2)
      .footer(
          "Example:\n  outcore bench stream --memory outcore --budget 8% --store "
          "redis://node-1:7000/s");
  add_workload(bench, "jacobi", "Poisson's equation by a stencil of 19 points (Himeno)", request)
      .size("--size", o.size_bytes, "bytes of the fourteen arrays (1G)")
      .option("--passes", o.loops, "loops over the grid (4)")
      .at_least(1)
      .footer("Example:\n  outcore bench jacobi --size 2G --budget 10% --memory dram,outcore");
  add_workload(bench, "graph-construct",
               "adjacency lists of an R-MAT graph, edge by edge, in a heap that outlives the "
               "program",
               request)
      .option("--scale", o.scale, "2^scale vertices (18)")
      .option("--edge-factor", o.edge_factor, "edges a vertex (16)")
      .option("--allocator", o.allocator,
              "own: outcore's heap, over mmap's mapping, too; boost: Boost's, in a region, too; or "
              "auto: each its own (auto)")
      .footer(
          "malloc is the standard library's containers in memory, mmap a managed_mapped_file of\n"
          "Boost.Interprocess, outcore a PersistentHeap with default settings; with --allocator "
          "own\n"
          "mmap is the same PersistentHeap over the kernel's mapping.\n"
          "Example:\n  outcore bench graph-construct --scale 21 --budget 512M --memory "
          "mmap,outcore");
}

}  // namespace

void add_bench(CommandSyntax& outcore) {
  const auto request = std::make_shared<BenchRequest>();
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
