#include "bench/commands/bench_request.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "bench/genome_files.h"
#include "bench/graph_workload.h"
#include "bench/kmer_builder.h"
#include "bench/memory.h"
#include "bench/nas_class.h"
#include "cli/command.h"
#include "cli/text.h"
#include "outcore/outcore.h"

namespace outcore::cli {
namespace {

using bench::Options;

// "256M", or a share of the data, as in "8%".
Status resolve_budget(BenchRequest& request) {
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
    return Error{EINVAL, "--budget " + text + " is not a share of the data: write 8% or 12.5%"};
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

// Real genomes, too: a hash table has room for their k-mers.
Status resolve_genomes(BenchRequest& request) {
  Options& o = request.options;
  if (!request.genomes) return {};
  if (request.genomes->empty())
    return Error{EINVAL, "--genomes '' is not a folder: name one of FASTA files, or leave it out"};
  if (o.size_bytes != Options().size_bytes)
    return Error{EINVAL, "--genomes have a size of their own: leave out --size"};
  auto files = bench::GenomeFiles::read(*request.genomes);
  if (!files) return files.error();
  o.genomes = std::move(files).value();
  o.size_bytes = bench::KmerBuilder::file_bytes_for(o.genomes->census().kmers);
  return {};
}

// Reads and look-ups are counted by options of their own.
Status resolve_samples(BenchRequest& request) {
  Options& o = request.options;
  if (o.workload != "kmers") return {};
  if (o.is_of_lookups && request.reads != 0)
    return Error{EINVAL, "--lookups looks up k-mers, and no reads: use --touches for --reads"};
  if (!o.is_of_lookups && o.touches != 0)
    return Error{EINVAL, "--touches counts look-ups: add --lookups, or use --reads"};
  if (!o.is_of_lookups) o.touches = request.reads;
  return {};
}

}  // namespace

Status BenchRequest::resolve() {
  Options& o = options;
  if (o.has_reuse && !is_json)
    return Error{EINVAL, "--reuse is printed as lines of JSON: add --json, or leave it out"};
  if (Status s = resolve_samples(*this); !s) return s;
  if (Status s = resolve_class(o); !s) return s;
  if (Status s = resolve_genomes(*this); !s) return s;
  if (Status s = resolve_budget(*this); !s) return s;
  o.memories = split(memory, ',');
  if (memory == "all") {
    o.memories = bench::memory_names();
    // Not all can do everything: sort, bfs and map-lookup need a mapping.
    if (o.workload != "random-io" && o.workload != "scan") std::erase(o.memories, "direct");
    std::erase(o.memories, "two-pass");  // needs a disk that has O_DIRECT, and room for runs
    std::erase(o.memories, "swap");      // changes the machine for a while: only if it is named
    std::erase(o.memories, "dram-huge");
    std::erase(o.memories, "mmap-dontneed");
    std::erase(o.memories, "malloc");
    std::erase(o.memories, "outcore-random");
    // Plain memory is each process's own: it cannot be sorted by several.
    if (o.workload == "sort" && o.processes > 1) std::erase(o.memories, "dram");
    // What one process writes there the others do not see, or undo.
    if (o.is_overlapping && o.write_percent != 0 && o.processes > 1) {
      std::erase(o.memories, "dram");
      std::erase(o.memories, "direct");
    }
  }
  if (o.workload == "alloc" && (memory == "all" || memory == BenchRequest().memory))
    o.memories = {"dram", "malloc", "outcore"};
  if (o.workload == "graph-construct" && (memory == "all" || memory == BenchRequest().memory)) {
    o.memories = {"malloc", "mmap", "outcore"};
    if (o.allocator == "own") o.memories.insert(o.memories.end() - 1, "mmap-random");
  }
  if (o.table == "heap" && memory == "all")
    o.memories = {"malloc", "mmap", "mmap-random", "outcore"};
  // A heap has LMAT's index.
  const char* const index_default = o.table == "heap" ? "two-level" : "hash";
  o.index = index.empty() ? index_default : index;
  if (distribution.empty()) distribution = o.workload == "ycsb" ? "zipf" : "uniform";
  const size_t colon = distribution.find(':');
  o.distribution = distribution.substr(0, colon);
  if (colon != std::string::npos && (o.distribution == "uniform" || o.distribution == "once"))
    return Error{EINVAL, "distribution '" + distribution + "' has a number too many: use " +
                             o.distribution + ", or zipf:0.99"};
  if (colon != std::string::npos) {
    char* end = nullptr;
    const std::string theta = distribution.substr(colon + 1);
    o.theta = std::strtod(theta.c_str(), &end);
    if (theta.empty() || *end != 0) o.theta = 0;  // which check_options() refuses
  }
  if (latency != "auto" && latency != "on" && latency != "off")
    return Error{EINVAL, "--latency " + latency + " is unknown: use one of auto, on or off"};
  if (share != "auto" && share != "on" && share != "off")
    return Error{EINVAL, "--share " + share + " is unknown: use one of auto, on or off"};
  // What the experiments of these are about; others have each its slice.
  const bool is_on_one_file =
      o.workload == "matmul" || o.workload == "sort" || o.workload == "kmers" || o.is_overlapping;
  o.is_shared = share == "on" || (share == "auto" && is_on_one_file && o.processes > 1);
  // Two clock readings are nothing beside a miss, and much beside a hit.
  o.has_latency = latency == "on" || (latency == "auto" && o.budget_bytes < o.size_bytes);
  return {};
}

}  // namespace outcore::cli
