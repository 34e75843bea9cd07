// outcore bench compare, ingest, generate: what goes with the benchmarks.
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>

#include "bench/csr.h"
#include "bench/data.h"
#include "bench/runner.h"
#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/text.h"

namespace outcore::cli {
namespace {

using bench::RunResult;
using bench::Series;

// What makes two runs comparable: the same work. With the memory, where both files have it.
std::string key_of(const RunResult& run, bool has_memory) {
  const std::string variant = run.extra.value("variant", std::string());
  return format("%-10s %9s in %9s, %u thread(s), page %s", run.workload.c_str(),
                format_bytes(run.data_bytes).c_str(), format_bytes(run.budget_bytes).c_str(),
                run.threads * run.processes,
                has_memory ? format_bytes(run.page_bytes).c_str() : "any") +
         (variant.empty() ? "" : ", " + variant) + (has_memory ? ", " + run.memory : "");
}

std::map<std::string, Series> by_key(const std::vector<RunResult>& runs, bool has_memory) {
  std::map<std::string, Series> all;
  for (const RunResult& run : runs) {
    Series& series = all[key_of(run, has_memory)];
    series.memory = run.memory;
    series.runs.push_back(run);
  }
  return all;
}

// Prints a line for each key that both have; how many.
unsigned print_ratios(const std::vector<RunResult>& a, const std::vector<RunResult>& b,
                      bool has_memory) {
  const auto as = by_key(a, has_memory), bs = by_key(b, has_memory);
  unsigned count = 0;
  for (const auto& [key, series] : as) {
    const auto other = bs.find(key);
    if (other == bs.end()) continue;
    ++count;
    const auto ratio = bench::compare(series, other->second);
    if (ratio)
      std::printf("%s: %.2f x (%.2f … %.2f)\n", key.c_str(), ratio->value, ratio->low, ratio->high);
    else
      std::printf("%s: %s\n", key.c_str(), ratio.message().c_str());
  }
  return count;
}

int compare_files(const std::string& a, const std::string& b) {
  auto runs_a = bench::read_runs(a);
  if (!runs_a) return report(runs_a.error());
  auto runs_b = bench::read_runs(b);
  if (!runs_b) return report(runs_b.error());
  std::printf("rates of %s over rates of %s, medians (extremes)\n", a.c_str(), b.c_str());
  if (print_ratios(*runs_a, *runs_b, true) != 0) return 0;
  if (print_ratios(*runs_a, *runs_b, false) != 0) return 0;
  return report(Error{ENOENT,
                      "the files have no run of the same work: same workload and its options, "
                      "data, budget and threads"});
}

// `data` is where it was made: a graph that was not leaves nothing.
int tell_graph(const Result<bench::CsrHeader>& header, bench::Data& data) {
  if (!header) {
    data.remove_new();
    return report(header.error());
  }
  const std::string& path = data.uri();
  std::printf("%s: %llu vertices, %llu edges, %s; vertex %llu has most, %llu\n", path.c_str(),
              static_cast<unsigned long long>(header->vertices),
              static_cast<unsigned long long>(header->edges),
              format_bytes(header->size_bytes()).c_str(),
              static_cast<unsigned long long>(header->source),
              static_cast<unsigned long long>(header->degree_max));
  return 0;
}

struct Paths {
  std::string in, out, kind;
  bool is_directed = false;
  bench::Options options;
};

// The words' and the graph's files become a benchmark's: the next may overwrite them.
bench::Options options_of(const Paths& p) {
  bench::Options options = p.options;
  options.store = p.out;
  options.store_remedy = "name another OUT";
  options.is_kept = true;
  return options;
}

Status check_paths(const Paths& p) {
  if (p.out.empty()) return Error{EINVAL, "OUT is empty: write the path of the file to be made"};
  if (p.kind == "words" && (p.options.size_bytes == 0 || p.options.size_bytes % 8 != 0))
    return Error{EINVAL, "--size must be a multiple of 8, the bytes of a word, and not 0"};
  std::error_code ignored;
  if (std::filesystem::equivalent(p.in, bench::path_of(p.out), ignored))
    return Error{EINVAL, p.out + " is EDGES itself, which would be lost: name another OUT"};
  return {};
}

int generate(const Paths& p) {
  if (Status s = check_paths(p); !s) return report(s.error());
  bench::Data data(options_of(p), "");
  if (Status s = data.claim(); !s) return report(s.error());
  data.mark_changed();
  if (p.kind == "rmat") {
    const auto made =
        bench::make_rmat(p.out, p.options.scale, p.options.edge_factor, p.options.seed);
    return tell_graph(made, data);
  }
  auto medium = bench::open_medium(p.out, p.options.size_bytes, true,
                                   "name an OUT with more room, or use a smaller --size");
  const Status status =
      medium ? bench::write_words(**medium, p.options.size_bytes, p.options.seed) : medium.status();
  if (!status) {
    data.remove_new();
    return report(status.error());
  }
  std::printf("%s: %s of 64-bit words\n", p.out.c_str(),
              format_bytes(p.options.size_bytes).c_str());
  return 0;
}

int ingest_graph(const Paths& p) {
  if (Status s = check_paths(p); !s) return report(s.error());
  const auto count = bench::count_edges(p.in);
  if (!count) return report(count.error());
  bench::Data data(options_of(p), "");
  if (Status s = data.claim(); !s) return report(s.error());
  data.mark_changed();
  return tell_graph(bench::ingest_edges(p.in, count.value(), p.out, p.is_directed), data);
}

}  // namespace

void add_bench_tools(CommandSyntax& bench_part) {
  auto paths = std::make_shared<Paths>();
  bench::Options& o = paths->options;
  bench_part.add("compare", "ratios of two files of --json lines, with their spread")
      .word("A", paths->in, "the file whose rates are divided")
      .word("B", paths->out, "by the rates of this one")
      .footer("Example:\n  outcore bench compare after.json before.json")
      .runs([paths] { return compare_files(paths->in, paths->out); });

  bench_part.add("ingest", "makes a graph file of lines of two vertex numbers")
      .word("EDGES", paths->in, "the text file; # and % begin comments")
      .word("OUT", paths->out, "the graph file, for bfs --graph")
      .flag("--directed", paths->is_directed, "edges lead one way only")
      .flag("--overwrite", o.may_overwrite, "OUT may hold something else")
      .footer(
          "Example:\n  outcore bench ingest edges.txt graph.csr\n"
          "  outcore bench bfs --graph graph.csr --budget 64M")
      .runs([paths] { return ingest_graph(*paths); });

  bench_part.add("generate", "makes a file of words, or a graph")
      .word("KIND", paths->kind, "words or rmat")
      .one_of({"words", "rmat"})
      .word("OUT", paths->out, "the file")
      .size("--size", o.size_bytes, "bytes of words (1G)")
      .option("--scale", o.scale, "2^scale vertices (18)")
      .range(6, 32)
      .option("--edge-factor", o.edge_factor, "edges a vertex (16)")
      .range(1, 1024)
      .number("--seed", o.seed, "the same seed, the same file (1)")
      .flag("--overwrite", o.may_overwrite, "OUT may hold something else")
      .footer("Example:\n  outcore bench generate rmat graph.csr --scale 20")
      .runs([paths] { return generate(*paths); });
}

}  // namespace outcore::cli
