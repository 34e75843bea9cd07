// Options: what one benchmark is asked to do. Plain values; the command fills them in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace outcore::bench {

class GenomeFiles;

// The unit in which data is made, numbered and checked, whatever the page size of the memory.
inline constexpr uint64_t kUnitBytes = 4096;
inline constexpr uint64_t kUnitWords = kUnitBytes / sizeof(uint64_t);
inline constexpr unsigned kThreadsMax = 4096;
// Passes of stream, of which the first is not counted (as STREAM's NTIMES), of jacobi and pagerank.
inline constexpr unsigned kStreamPasses = 10, kJacobiPasses = 4, kPageRankPasses = 5;
// Of is, as the NAS Parallel Benchmarks have it.
inline constexpr unsigned kIntegerSortPasses = 10;
inline constexpr unsigned kLoopsMax = 100;

struct Options {
  std::string workload = "random-io";
  std::vector<std::string> memories = {"mmap", "mmap-random", "outcore"};

  std::string store;           // URI; empty: a file of its own in `dir`
  std::string dir;             // empty: OUTCORE_BENCH_DIR, TMPDIR, else /var/tmp
  bool may_overwrite = false;  // `store` may be a file that is not a benchmark's
  bool is_kept = false;        // the data stays for the next benchmark
  // How the user names another `store`, for messages.
  std::string store_remedy = "name another with --store";
  uint64_t size_bytes = uint64_t{1} << 30;
  uint64_t budget_bytes = uint64_t{256} << 20;
  uint64_t page_bytes = 4096;  // of Outcore, and of the transfers of `direct`
  unsigned threads = 4;        // of each process
  unsigned processes = 1;
  unsigned repeat = 1;
  uint64_t seed = 1;
  double limit_seconds = 0;   // a run that takes longer is stopped; 0: none
  bool is_warm = false;       // all data is touched before the time starts
  bool is_unlimited = false;  // no memory cgroup

  bool has_reuse = false;  // outcore: the run is recorded, for its reuse distances

  // Outcore's own settings; empty: its default.
  std::string policy, delivery, frames, advice;
  // The processes have their pages in one buffer of the whole budget, and not each its share of it.
  bool is_shared = false;
  std::string buffer;  // its name, while such a run lasts; run_once() sets it

  // sort: a file whose words are sorted, in a copy; empty: words made from the seed.
  std::string source;

  // random-io, lookups of map-lookup, vectors of images, reads and look-ups of kmers,
  // operations of ycsb
  uint64_t touches = 0;  // of all threads together; 0: as many as the workload has by default
  unsigned write_percent = 0;
  std::string distribution = "uniform";  // uniform, zipf, once (each unit at most once)
  double theta = 0.99;                   // of zipf
  bool is_overlapping = false;           // random-io: processes touch all of the data
  bool has_latency = true;               // time each touch

  // scan
  unsigned passes = 1;
  uint64_t stride = 1;  // every n-th unit of 4 KiB
  bool is_backward = false;
  unsigned depth = 4;  // transfers in flight of each thread of `direct`

  // stream, jacobi, pagerank, is, cg, ft
  unsigned loops = 0;  // passes; 0: kStreamPasses, kJacobiPasses, …

  // is, cg, ft
  std::string nas_class;  // instead of a size: S, W, A, B or C (nas_class.h); empty: none

  // kmers
  std::string index = "hash";       // see index_names()
  bool is_top_pinned = false;       // the words of a two-level index stay in memory
  std::string export_folder;        // where data and answers are written for others; empty: nowhere
  bool is_of_lookups = false;       // k-mers are looked up by themselves, and no reads told
  bool has_prefetch_lists = false;  // the pages of a read are asked for before its k-mers
  std::shared_ptr<const GenomeFiles> genomes;  // real ones, which tell the size; nullptr: made-up

  // ycsb
  std::string mix = "B";  // see ycsb_mix_names()
  // ycsb, kmers
  std::string table = "records";  // or heap: what is looked up in is in a heap (ycsb_heap.h)
  // matmul
  std::string order = "rows";  // see walk_orders()
  uint64_t tile = 0;           // numbers a side of the blocks of B; 0: none

  // map-lookup
  std::string structure = "map";  // see structure_names()

  // graph-construct, and tables in heaps: auto (outcore's heap is its own, mmap's Boost's); own:
  // mmap, too, has Outcore's; boost: outcore, too, has Boost's, in a region
  std::string allocator = "auto";

  // bfs, components, pagerank
  unsigned scale = 18;             // 2^scale vertices
  unsigned edge_factor = 16;       // edges a vertex, before both directions are stored
  std::string graph;               // a CSR file (see csr.h) instead of an R-MAT graph
  bool is_fully_external = false;  // what is kept for each vertex is in a region too
  // bfs
  bool is_asynchronous = false;  // no thread waits for a level to end
};

}  // namespace outcore::bench
