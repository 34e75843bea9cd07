#include "bench/option_checks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "bench/band_product.h"
#include "bench/graph_workload.h"
#include "bench/image_cube.h"
#include "bench/kmer_builder.h"
#include "bench/kmer_index.h"
#include "bench/lookup_data.h"
#include "bench/matrices.h"
#include "bench/medium.h"
#include "bench/memory.h"
#include "bench/nas_class.h"
#include "bench/record_table.h"
#include "bench/run_plan.h"
#include "bench/workload.h"
#include "bench/ycsb_mix.h"
#include "cli/text.h"
#include "outcore/store_catalog.h"

namespace outcore::bench {
namespace {

bool is_power_of_two(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Status refuse(std::string why) { return Error{EINVAL, std::move(why)}; }

// As it was typed: "4097", "32M".
std::string typed_bytes(uint64_t bytes) {
  static constexpr std::string_view kUnits = "kMGT";
  size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit < kUnits.size()) bytes /= 1024, ++unit;
  return std::to_string(bytes) + std::string(kUnits.substr(unit == 0 ? 0 : unit - 1, unit != 0));
}

Status check_names(const Options& o) {
  if (!has(workload_names(), o.workload))
    return refuse("workload '" + o.workload + "' is unknown: use one of " +
                  joined(workload_names()));
  if (o.memories.empty()) return refuse("--memory names no memory: use mmap,outcore or all");
  for (const std::string& memory : o.memories) {
    if (!has(memory_names(), memory))
      return refuse("memory '" + memory + "' is unknown: use one of " + joined(memory_names()) +
                    ", or all");
    if (std::count(o.memories.begin(), o.memories.end(), memory) > 1)
      return refuse("--memory names " + memory +
                    " more than once: say it once, and use --repeat to run it again");
  }
  if (!has({"uniform", "zipf", "once"}, o.distribution))
    return refuse("distribution '" + o.distribution +
                  "' is unknown: use uniform, zipf[:theta] or once");
  return {};
}

Status check_kernels(const Options& o) {
  if (o.workload == "pagerank" && o.loops > kLoopsMax) return refuse("--passes must be 1 … 100");
  const bool is_stream = o.workload == "stream";
  if (!is_stream && o.workload != "jacobi") return {};
  const uint64_t size_min = is_stream ? 3 * kUnitBytes : 14 * kUnitBytes;
  if (o.size_bytes < size_min)
    return refuse("--size must be " + typed_bytes(size_min) + " or more: a page for each array");
  if (o.loops > kLoopsMax || (is_stream && o.loops == 1))
    return refuse(is_stream ? "--passes must be 2 … 100: the first is not counted"
                            : "--passes must be 1 … 100");
  return {};
}

Status check_samples(const Options& o) {
  static constexpr uint64_t kVectorsMax = uint64_t{1} << 24;  // each has an answer in memory
  if (o.workload == "images") {
    if (o.size_bytes < ImageCube::kBytesMin)
      return refuse("--size must be " + typed_bytes(ImageCube::kBytesMin) +
                    " or more: some images of some pixels");
    if (o.touches > kVectorsMax)
      return refuse("--touches must be " + std::to_string(kVectorsMax) + " vectors or fewer");
  }
  if (!has(index_names(), o.index))
    return refuse("index '" + o.index + "' is unknown: use one of " + joined(index_names()));
  if (o.is_top_pinned && o.index != "two-level")
    return refuse("--pin-top: an index of one level has no top: use --index two-level");
  if (o.is_of_lookups && o.has_prefetch_lists)
    return refuse("--lookups has no reads whose pages could be listed: leave out --prefetch-lists");
  if (o.is_of_lookups && !o.export_folder.empty())
    return refuse("--lookups has no reads to export: leave out one of the two");
  if (o.workload == "kmers" && o.size_bytes < KmerBuilder::kFileBytesMin)
    return refuse("--size must be " + typed_bytes(KmerBuilder::kFileBytesMin) +
                  " or more: room for the k-mers of sixteen genera");
  return {};
}

// What nobody can ask of a table or an index that is made in a heap for the runs.
Status check_heap_table(const Options& o) {
  if (o.table != "heap") return {};
  for (const std::string& memory : o.memories)
    if (!has_object_heap(memory))
      return refuse("--table heap cannot be in " + memory +
                    ": use --memory malloc,mmap,mmap-random,outcore, or leave out --table");
  const std::pair<std::string, bool> others[] = {
      {"--store", !o.store.empty()},
      {"--keep", o.is_kept},
      {"--delivery", !o.delivery.empty()},
      {"--frames", !o.frames.empty()},
      {"--advice", !o.advice.empty()},
      {"--index " + o.index, o.workload == "kmers" && o.index != "two-level"},
      {"--processes", o.processes != 1},
      {"--lookups", o.is_of_lookups},
      {"--pin-top", o.is_top_pinned},
      {"--prefetch-lists", o.has_prefetch_lists},
      {"--export", !o.export_folder.empty()}};
  for (const auto& [name, is_said] : others)
    if (is_said) return refuse(name + " is not for --table heap: leave out one of the two");
  return {};
}

Status check_ycsb(const Options& o) {
  if (!has(ycsb_mix_names(), o.mix))
    return refuse("mix '" + o.mix + "' is unknown: use one of " + joined(ycsb_mix_names()));
  if (!has({"records", "heap"}, o.table))
    return refuse("table '" + o.table + "' is unknown: use one of records, heap");
  if (Status s = check_heap_table(o); !s) return s;
  if (o.workload != "ycsb") return {};
  if (o.distribution == "once")
    return refuse("ycsb has no distribution 'once': use zipf or uniform");
  if (o.size_bytes < RecordLayout::kFileBytesMin || o.size_bytes > RecordLayout::kFileBytesMax)
    return refuse("--size must be " + typed_bytes(RecordLayout::kFileBytesMin) + " … " +
                  typed_bytes(RecordLayout::kFileBytesMax) + " of records");
  const YcsbMix& mix = ycsb_mix(o.mix);
  const uint64_t operations = o.touches == 0 ? mix.operations_default() : o.touches;
  if (mix.inserts_max(operations) > RecordLayout(o.size_bytes).slots / 2)
    return refuse("mix " + o.mix +
                  " would insert more records than there are: use fewer --touches "
                  "than " +
                  std::to_string(operations) + ", or a larger --size");
  return {};
}

Status check_matmul(const Options& o) {
  if (!has(walk_orders(), o.order))
    return refuse("order '" + o.order + "' is unknown: use one of " + joined(walk_orders()));
  if (o.workload != "matmul") return {};
  if (o.size_bytes < Matrices::kBytesMin)
    return refuse("--size must be " + typed_bytes(Matrices::kBytesMin) +
                  " or more: a matrix of some rows");
  const uint64_t side = Matrices(o.size_bytes, o.seed).side();
  if (o.tile % Matrices::kSideStep != 0 || o.tile > side)
    return refuse(
        cli::format("--tile must be a multiple of %llu, up to %llu, the side of the "
                    "matrices; or 0: no tiles",
                    static_cast<unsigned long long>(Matrices::kSideStep),
                    static_cast<unsigned long long>(side)));
  if (uint64_t{o.processes} * o.threads > side)
    return refuse("--processes times --threads must be " + std::to_string(side) +
                  " or less: each computes rows of the matrix");
  return {};
}

// Several processes write one file, which only mappings of it can show to all, or two passes.
Status check_sort(const Options& o) {
  if (o.workload != "sort") return {};
  if (const RunPlan plan(o);
      has(o.memories, "two-pass") && !plan.is_one_pass() && plan.mergers() == 0)
    return refuse(
        cli::format("--budget is too small for two passes: %llu sorted runs and no page for each "
                    "in each process: use a larger one, or leave two-pass out of --memory",
                    static_cast<unsigned long long>(plan.runs())));
  if (has(o.memories, "two-pass") && o.is_warm)
    return refuse("--warm: two-pass keeps nothing that could be warm: leave it out of --memory");
  if (o.processes == 1) return {};
  for (const std::string& memory : o.memories) {
    if (memory.starts_with("dram") || memory == "swap")
      return refuse("each process has its own " + memory +
                    ": leave it out of --memory, or leave out --processes");
    if (is_outcore(memory) && !o.is_shared)
      return refuse("--share off keeps what processes of sort write from each other: leave it out");
  }
  return {};
}

// Processes that touch the same units: what one writes the others must see, and not undo.
Status check_overlap(const Options& o) {
  if (!o.is_overlapping || o.write_percent == 0 || o.processes == 1) return {};
  for (const std::string& memory : o.memories) {
    if (memory == "direct" || memory.starts_with("dram") || memory == "swap")
      return refuse("--overlap with writes: processes undo each other's in " + memory +
                    ": leave it out of --memory, or leave out --processes");
    if (is_outcore(memory) && !o.is_shared)
      return refuse(
          "--share off keeps what processes write from each other: leave it out, or --overlap");
  }
  return {};
}

Status check_allocator(const Options& o) {
  if (!has({"auto", "own", "boost"}, o.allocator))
    return refuse("allocator '" + o.allocator + "' is unknown: use auto, own or boost");
  if (o.allocator != "auto" && o.workload != "graph-construct" && o.table != "heap")
    return refuse("--allocator is of heaps: say --table heap, or leave it out");
  if (o.allocator == "boost" && o.workload != "graph-construct")
    return refuse("--allocator boost is of graph-construct alone: use own, or leave it out");
  if (o.workload == "graph-construct" && o.is_kept && o.store.empty())
    return refuse("--keep leaves a heap that no other run finds: name it with --store");
  if (o.allocator == "boost" && !o.store.empty() && plain_path(o.store).empty())
    return refuse("--allocator boost is for a file: name a path with --store");
  return {};
}

// What a run asks for whose processes share a buffer, as far as it would be in vain.
Status check_sharing(const Options& o) {
  static constexpr uint64_t kBufferBytesMin = uint64_t{4} << 20;  // outcore/buffers.h
  if (!o.is_shared || std::none_of(o.memories.begin(), o.memories.end(), is_outcore)) return {};
  std::string why;
  if (o.workload == "alloc" || o.workload == "graph-construct" || o.table == "heap")
    why = o.workload + " has a heap, and maps no file";
  else if (o.page_bytes != kUnitBytes)
    why = "--page " + typed_bytes(o.page_bytes) + ", where a buffer has pages of 4 KiB";
  else if (o.budget_bytes < kBufferBytesMin)
    why = "--budget must be " + typed_bytes(kBufferBytesMin) + " or more for a buffer";
  else if (o.frames == "private" || o.delivery == "mprotect")
    why = "private frames and mprotect keep pages to their process";
  else if (!o.store.empty() && plain_path(o.store).empty())
    why = without_password(o.store) + " is not a file";
  const bool is_written_by_all =
      o.processes > 1 && (o.workload == "sort" || (o.is_overlapping && o.write_percent != 0));
  const char* const remedy =
      is_written_by_all ? "; or leave out --processes" : "; or use --share off";
  return why.empty() ? Status() : refuse("processes cannot share: " + why + remedy);
}

// A record has the touches that its own process sees.
Status check_reuse(const Options& o) {
  if (!o.has_reuse) return {};
  if (std::none_of(o.memories.begin(), o.memories.end(), is_outcore))
    return refuse("--reuse is recorded in outcore alone: say --memory outcore");
  if (o.processes != 1) return refuse("--reuse is measured in one process: leave out --processes");
  if (o.is_shared) return refuse("--reuse is not measured in a buffer: use --share off");
  return {};
}

Status check_numbers(const Options& o) {
  if (!is_power_of_two(o.page_bytes) || o.page_bytes < 4096 || o.page_bytes > (uint64_t{16} << 20))
    return refuse("--page " + typed_bytes(o.page_bytes) +
                  " is not a page size: use a power of two, 4k … 16M");
  if (!is_graph_workload(o.workload) &&
      (o.size_bytes < kUnitBytes || o.size_bytes % kUnitBytes != 0))
    return refuse("--size must be a multiple of 4 KiB, and not 0");
  if (o.threads == 0 || o.threads > kThreadsMax) return refuse("--threads must be 1 … 4096");
  if (o.processes == 0 || o.processes > 256) return refuse("--processes must be 1 … 256");
  if (o.processes > 1 && !has({"random-io", "matmul", "sort", "kmers"}, o.workload))
    return refuse(o.workload + " runs in one process: leave out --processes");
  if (o.repeat == 0) return refuse("--repeat must be 1 or more");
  if (!std::isfinite(o.limit_seconds) || o.limit_seconds < 0)
    return refuse("--limit must be a number of seconds, 0 (no limit) or more");
  if (o.workload == "scan" && (o.stride == 0 || o.stride > o.size_bytes / kUnitBytes))
    return refuse("--stride must be 1 … " + std::to_string(o.size_bytes / kUnitBytes) +
                  ", the units of 4 KiB in --size");
  if (!has(structure_names(), o.structure))
    return refuse("structure '" + o.structure + "' is unknown: use one of " +
                  joined(structure_names()));
  if (o.workload == "map-lookup" && o.size_bytes < kLookupBytesMin)
    return refuse("--size must be 64k or more: the first 4 KiB say where the structure lies");
  if (o.passes == 0) return refuse("--passes must be 1 or more");
  if (Status s = check_kernels(o); !s) return s;
  if (Status s = check_samples(o); !s) return s;
  if (Status s = check_ycsb(o); !s) return s;
  if (Status s = check_matmul(o); !s) return s;
  if (Status s = check_sort(o); !s) return s;
  if (Status s = check_overlap(o); !s) return s;
  if (Status s = check_allocator(o); !s) return s;
  if (Status s = check_nas_class(o); !s) return s;
  if (o.depth == 0 || o.depth > 1024) return refuse("--depth must be 1 … 1024");
  if (o.write_percent > 100) return refuse("--write-percent must be 0 … 100");
  if (!(o.theta > 0 && o.theta < 1))
    return refuse("zipf's theta must lie between 0 and 1, as in zipf:0.99");
  if (o.scale < 6 || o.scale > 32) return refuse("--scale must be 6 … 32");
  if (o.edge_factor == 0 || o.edge_factor > 1024) return refuse("--edge-factor must be 1 … 1024");
  return {};
}

Status check_places(const Options& o) {
  for (const std::string& store : {o.store, o.graph}) {
    // A heap takes any store, and the others none.
    if (store.empty() || o.workload == "alloc") continue;
    // A heap that is built in one process may go with it.
    const bool may_go = o.workload == "graph-construct" && is_scratch(store);
    if (!may_go)
      if (Status s = check_store(store); !s) return s;
    if (!plain_path(store).empty()) continue;
    if (is_remote(store) && is_graph_workload(o.workload))
      return refuse(o.workload + " makes its graph in a file: name a path with --store");
    for (const std::string& memory : o.memories)
      if (!is_outcore(memory))
        return refuse(
            std::string(memory).append(" cannot use the store ").append(without_password(store)) +
            ": say --memory outcore");
  }
  return {};
}

// What Outcore says to the settings. `memory` outlives the call: its end is not part of the check.
Status try_outcore(const Options& o, std::unique_ptr<Memory>& memory) {
  static constexpr std::string_view kPrefix = "map memory:: ";
  // Without the buffer of a run: its processes have the whole budget.
  Options tried = o;
  if (tried.is_shared) tried.processes = 1;
  auto made = make_memory("outcore", tried);
  if (!made) return made.status();
  memory = std::move(made).value();
  const bool is_writable = has({"sort", "stream", "jacobi"}, o.workload) || o.write_percent != 0 ||
                           o.is_fully_external || is_nas_workload(o.workload) ||
                           (o.workload == "ycsb" && ycsb_mix(o.mix).is_writing());
  auto mapped = memory->map({"memory:", 0, o.page_bytes, is_writable});
  if (mapped) return {};
  // The store is nothing that the user named.
  const std::string& why = mapped.message();
  return Error{mapped.code(), why.starts_with(kPrefix) ? why.substr(kPrefix.size()) : why};
}

// Maps a page in Outcore as a run would, in a child, so that the parent stays as it is for all
// runs: a setting that Outcore refuses would otherwise come to light when the rivals have run.
Status check_outcore(const Options& o) {
  if (!has(o.memories, "outcore")) return {};
  int ends[2];
  if (pipe(ends) != 0) return cli::failure(errno, "make a pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::unique_ptr<Memory> memory;
    const Status status = try_outcore(o, memory);
    const int code = status.code();
    std::string said(reinterpret_cast<const char*>(&code), sizeof code);
    said += status.message().substr(0, 4000);
    // Fits in the pipe. No destructors: what is open is the parent's.
    _exit(write(ends[1], said.data(), said.size()) == std::ssize(said) ? 0 : 1);
  }
  const int fork_code = errno;
  close(ends[1]);
  std::string said;
  char text[4096];
  for (ssize_t n = 0; child > 0 && (n = read(ends[0], text, sizeof text)) != 0;) {
    if (n < 0 && errno != EINTR) break;
    if (n > 0) said.append(text, static_cast<size_t>(n));
  }
  close(ends[0]);
  if (child < 0) return cli::failure(fork_code, "fork");
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  int code = 0;
  if (said.size() <= sizeof code) return {};  // it is well, or died: then the run tells why
  std::memcpy(&code, said.data(), sizeof code);
  said.erase(0, sizeof code);
  if (code != 0 && o.processes > 1 && !o.is_shared)
    said += cli::format(" (each of %u processes has its share of --budget)", o.processes);
  return code == 0 ? Status() : Status(Error{code, std::move(said)});
}

}  // namespace

Status check_options(const Options& o) {
  if (Status s = check_names(o); !s) return s;
  if (Status s = check_numbers(o); !s) return s;
  if (Status s = check_places(o); !s) return s;
  if (Status s = check_sharing(o); !s) return s;
  if (Status s = check_reuse(o); !s) return s;
  return check_outcore(o);
}

}  // namespace outcore::bench
