// outcore demo: the main job on real input, through Outcore and through plain mmap under the same
// memory.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "bench/csr.h"
#include "bench/data.h"
#include "bench/memory_group.h"
#include "bench/runner.h"
#include "cli/command.h"
#include "cli/interrupts.h"
#include "cli/text.h"

namespace outcore::cli {
namespace {

using bench::format;
using bench::format_bytes;
using bench::format_count;
using bench::format_seconds;
using bench::Options;
using bench::Series;

constexpr uint64_t kMiB = uint64_t{1} << 20;
// A quarter of it holds the ten pages of 256 KiB and the buffers that Outcore sorts with at least.
constexpr uint64_t kSizeLeast = 11 * kMiB;

struct Demo {
  std::string dir, edges;
  uint64_t size_bytes = 1024 * kMiB;
  unsigned scale = 20;
  double limit_seconds = 120;
  unsigned threads = 4;
  bool has_failed = false;
  bool is_limited = true;
};

// Outcore first: it says how long the work takes, and the rivals need not be waited for for ever.
Options base_options(const Demo& demo) {
  Options o;
  o.dir = demo.dir;
  o.threads = demo.threads;
  o.limit_seconds = demo.limit_seconds;
  o.memories = {"outcore", "mmap-random", "mmap"};
  return o;
}

void print_head() {
  std::printf("  %-26s %10s %10s %11s %11s %11s\n", "", "time", "fills", "read", "written",
              "peak memory");
}

const char* name_for_people(const std::string& memory) {
  if (memory == "outcore") return "Outcore";
  if (memory == "mmap") return "mmap, kernel's readahead";
  if (memory == "mmap-random") return "mmap, MADV_RANDOM";
  return memory.c_str();
}

void print_run(Demo& demo, const bench::RunResult& r) {
  if (r.is_stopped) {
    std::printf("  %-26s %s\n", name_for_people(r.memory), r.stop_reason.c_str());
  } else {
    std::printf("  %-26s %10s %10s %11s %11s %11s  %s\n", name_for_people(r.memory),
                format_seconds(r.seconds).c_str(),
                format_count(static_cast<double>(r.fills)).c_str(),
                format_bytes(r.read_bytes).c_str(), format_bytes(r.written_bytes).c_str(),
                r.peak_bytes != 0 ? format_bytes(r.peak_bytes).c_str() : "-",
                r.is_checked ? "verified" : "NOT VERIFIED");
  }
  demo.is_limited = demo.is_limited && r.is_limited;
  std::fflush(stdout);
}

// "Outcore took 0.41 of the time of the better mmap."
void print_comparison(const std::vector<Series>& all) {
  const Series& outcore = all.front();
  const Series* best = nullptr;
  for (size_t i = 1; i < all.size(); ++i)
    if (!all[i].is_stopped() && (best == nullptr || all[i].median_rate() > best->median_rate()))
      best = &all[i];
  if (outcore.is_stopped()) {
    std::printf("  Outcore was stopped by the time limit.\n");
  } else if (best == nullptr) {
    std::printf("  Plain mmap did not finish.\n");
  } else {
    const double ratio = outcore.median_rate() / best->median_rate();
    std::printf("  Outcore is %.2f times as fast as the better mmap.\n", ratio);
  }
}

void run_part(Demo& demo, const Options& options) {
  print_head();
  auto all = bench::run_in_turns(options, [&](const auto& run) { print_run(demo, run); });
  if (!all) {
    report(all.error());
    demo.has_failed = true;
    return;
  }
  print_comparison(*all);
}

void sort_words(Demo& demo) {
  Options o = base_options(demo);
  o.workload = "sort";
  o.size_bytes = demo.size_bytes;
  o.budget_bytes = demo.size_bytes / 4;
  o.page_bytes = 256 * 1024;
  std::printf("\n1. Sort %s of 64-bit words in place with %s of memory, %u threads, pages of %s\n",
              format_bytes(o.size_bytes).c_str(), format_bytes(o.budget_bytes).c_str(), o.threads,
              format_bytes(o.page_bytes).c_str());
  run_part(demo, o);
}

// The name that the edge list gives to a vertex, in a comment "# vertex NUMBER NAME".
std::string name_of(const std::string& edges, uint64_t vertex) {
  std::ifstream file(edges);
  const std::string wanted = format("# vertex %llu ", static_cast<unsigned long long>(vertex));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(wanted)) return line.substr(wanted.size());
  return format("vertex %llu", static_cast<unsigned long long>(vertex));
}

void search_edges(Demo& demo, const bench::EdgeCount& count) {
  Options o = base_options(demo);
  o.workload = "bfs";
  bench::Data place(o, "outcore-demo-packages.csr");  // gone at the end
  if (Status s = place.claim(); !s) {
    report(s.error());
    demo.has_failed = true;
    return;
  }
  place.mark_changed();
  o.graph = place.path();
  const auto header = bench::ingest_edges(demo.edges, count, o.graph, false);
  if (!header) {
    report(header.error());
    demo.has_failed = true;
    return;
  }
  o.budget_bytes = std::max(header.value().size_bytes() / 4 / 4096 * 4096, kMiB);
  std::printf(
      "\n2. Search the graph of %s: %s vertices, %s edges, %s, with %s of memory,\n"
      "   from %s, which has most neighbours (%s)\n",
      std::filesystem::path(demo.edges).filename().c_str(),
      format_count(static_cast<double>(header.value().vertices)).c_str(),
      format_count(static_cast<double>(header.value().edges)).c_str(),
      format_bytes(header.value().size_bytes()).c_str(), format_bytes(o.budget_bytes).c_str(),
      name_of(demo.edges, header.value().source).c_str(),
      format_count(static_cast<double>(header.value().degree_max)).c_str());
  run_part(demo, o);
}

void search_rmat(Demo& demo) {
  Options o = base_options(demo);
  o.workload = "bfs";
  o.scale = demo.scale;
  const uint64_t about = (uint64_t{1} << o.scale) * o.edge_factor * 2 * sizeof(uint64_t);
  o.budget_bytes = std::max(about / 4, kMiB);
  o.page_bytes = 64 * 1024;
  std::printf(
      "\n3. Search an R-MAT graph of 2^%u vertices, about %s, with %s of memory, pages of %s\n",
      o.scale, format_bytes(about).c_str(), format_bytes(o.budget_bytes).c_str(),
      format_bytes(o.page_bytes).c_str());
  run_part(demo, o);
}

Status check_numbers(const Demo& demo) {
  if (demo.size_bytes < kSizeLeast || demo.size_bytes % 4096 != 0)
    return Error{EINVAL, "--size must be a multiple of 4 KiB, and 11 MiB or more"};
  if (!std::isfinite(demo.limit_seconds) || demo.limit_seconds < 0)
    return Error{EINVAL, "--limit must be a number of seconds, 0 (no limit) or more"};
  return {};
}

void tell_what_is_done(const Demo& demo, bool has_groups) {
  const bench::Data place(base_options(demo), "outcore-demo");
  const std::string dir = std::filesystem::path(place.path()).parent_path();
  const bench::Device device = bench::device_of(dir);
  const std::string ahead = device.read_ahead_kb < 0
                                ? ""
                                : format(" (the kernel reads %lld KiB ahead there)",
                                         static_cast<long long>(device.read_ahead_kb));
  std::printf("Work on data four times larger than its memory, in %s on %s%s.\n", dir.c_str(),
              device.name.c_str(), ahead.c_str());
  std::printf("%s; answers are verified outside the time measured.\n",
              has_groups ? "Each run has a memory cgroup of its own"
                         : "Memory cgroups cannot be made here, so mmap may use all memory");
}

void tell_what_columns_mean(bool has_groups) {
  std::printf(
      "\nfills: times a page had to be brought in (mmap: major faults, each of which may read many "
      "pages ahead).\nread, written: bytes from and to the device.%s\n"
      "Outcore chooses what leaves memory, writes back only the 4 KiB that changed\n"
      "and reads pages of the size it was told; mmap's page cache guesses.\n",
      has_groups
          ? " peak memory: of the whole cgroup, the page cache and the\nprogram's own arrays "
            "included."
          : "");
}

int run_demo(Demo& demo) {
  if (Status s = check_numbers(demo); !s) return report(s.error());
  bench::EdgeCount count;
  if (!demo.edges.empty()) {
    const auto counted = bench::count_edges(demo.edges);
    if (!counted) return report(counted.error());
    count = counted.value();
  }
  const bool has_groups = bench::MemoryGroup::make().ok();
  tell_what_is_done(demo, has_groups);
  bench::catch_interrupts();
  sort_words(demo);
  if (demo.edges.empty())
    std::printf(
        "\n2. No graph of packages: make one with tools/package_graph.py and name it with "
        "--edges\n");
  else
    search_edges(demo, count);
  search_rmat(demo);
  tell_what_columns_mean(has_groups);
  if (!demo.is_limited)
    std::fprintf(stderr, "outcore: memory was not limited, so mmap had all of it: run as root\n");
  return demo.has_failed ? kFailed : 0;
}

}  // namespace

void add_demo(CLI::App& app, int& status) {
  auto demo = std::make_shared<Demo>();
  CLI::App* const command = app.add_subcommand(
      "demo",
      "Sort a file and search graphs several times their memory, in Outcore and plain mmap");
  command
      ->add_option("--dir", demo->dir,
                   "where the data is made (OUTCORE_BENCH_DIR, TMPDIR, /var/tmp)")
      ->check(CLI::ExistingDirectory);
  add_bytes(*command, "--size", demo->size_bytes, "bytes to sort (1G)");
  command
      ->add_option("--edges", demo->edges, "a text file of edges, as tools/package_graph.py prints")
      ->check(CLI::ExistingFile);
  command->add_option("--scale", demo->scale, "2^scale vertices of the R-MAT graph (20)")
      ->check(CLI::Range(6, 30));
  command->add_option("--threads", demo->threads, "threads (4)")->check(CLI::Range(1, 256));
  command->add_option("--limit", demo->limit_seconds, "seconds after which a run is stopped (120)");
  command->footer("Example:\n  outcore demo --dir /var/tmp --size 1G");
  command->callback([demo, &status] { status = run_demo(*demo); });
}

}  // namespace outcore::cli
