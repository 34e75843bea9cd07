// outcore demo: work on this machine's own files and packages, through Outcore and through plain
// mmap under the same memory, with default settings.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "bench/commands/demo_files.h"
#include "bench/commands/demo_page.h"
#include "bench/csr.h"
#include "bench/data.h"
#include "bench/memory_group.h"
#include "bench/runner.h"
#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/interrupts.h"
#include "cli/text.h"

namespace outcore::cli {
namespace {

using bench::Options;
using bench::Series;

constexpr uint64_t kMiB = uint64_t{1} << 20;
// A quarter of it holds the buffers that Outcore sorts with at least.
constexpr uint64_t kSizeLeast = 11 * kMiB;

struct Demo {
  std::string dir, edges, files = "/usr", page_path;
  uint64_t size_bytes = 256 * kMiB;
  unsigned scale = 0;  // 0: no R-MAT graph
  double limit_seconds = 60;
  unsigned threads = 4;
  bool has_failed = false;
  bool is_limited = true;
  DemoPage page;
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

void print_run(Demo& demo, const bench::RunResult& r) {
  if (r.is_stopped) {
    std::printf("  %-26s %s\n", name_for_people(r.memory).c_str(), r.stop_reason.c_str());
  } else {
    std::printf("  %-26s %10s %10s %11s %11s %11s  %s\n", name_for_people(r.memory).c_str(),
                format_seconds(r.seconds).c_str(),
                format_count(static_cast<double>(r.fills)).c_str(),
                format_bytes(r.read_bytes).c_str(), format_bytes(r.written_bytes).c_str(),
                r.peak_bytes != 0 ? format_bytes(r.peak_bytes).c_str() : "-",
                r.is_checked ? "verified" : "NOT VERIFIED");
  }
  demo.is_limited = demo.is_limited && r.is_limited;
  std::fflush(stdout);
}

// A sentence that says how Outcore did beside each mmap.
std::string compare_with_mmap(const std::vector<Series>& all) {
  const Series& outcore = all.front();
  if (outcore.is_stopped()) return "Outcore was stopped by the time limit.";
  std::string said;
  for (size_t i = 1; i < all.size(); ++i) {
    const std::string name = name_for_people(all[i].memory);
    said += said.empty() ? "" : "; ";
    if (all[i].is_stopped())
      said += name + " did not finish";
    else
      said += format("%.2f times as fast as %s", outcore.median_rate() / all[i].median_rate(),
                     name.c_str());
  }
  return "Outcore: " + said + ".";
}

// Says what is done, does it in each memory, and keeps the runs for the page.
void run_part(Demo& demo, const Options& options, const std::string& title,
              const std::string& text) {
  std::printf("\n%zu. %s\n   %s\n", demo.page.parts.size() + 1, title.c_str(), text.c_str());
  print_head();
  auto all = bench::run_in_turns(options, [&](const auto& run) { print_run(demo, run); });
  if (!all) {
    report(all.error());
    demo.has_failed = true;
    return;
  }
  demo.page.parts.push_back({title, text, *all, compare_with_mmap(*all)});
  std::printf("  %s\n", demo.page.parts.back().verdict.c_str());
}

void sort_words(Demo& demo) {
  Options o = base_options(demo);
  o.workload = "sort";
  bench::Data place(o, "outcore-demo-files.dat");  // gone at the end
  Status status = place.claim();
  Result<uint64_t> gathered = Error{ECANCELED, ""};
  if (status) {
    place.mark_changed();
    gathered = gather_files(demo.files, demo.size_bytes, place.path());
    status = gathered.status();
  }
  if (status && *gathered < kSizeLeast)
    status = Error{ENODATA, demo.files + " has less than " + format_bytes(kSizeLeast) +
                                " in files that can be read: name another folder with --files"};
  if (!status) {
    report(Error{status.code(), status.message()});
    demo.has_failed = true;
    return;
  }
  o.source = place.path();
  o.size_bytes = *gathered;
  o.budget_bytes = o.size_bytes / 4 / 4096 * 4096;
  run_part(
      demo, o,
      format("Sort %s in place with %s of memory", format_bytes(o.size_bytes).c_str(),
             format_bytes(o.budget_bytes).c_str()),
      format("The 64-bit words of the files below %s, %u threads.", demo.files.c_str(), o.threads));
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
  const bench::CsrHeader& graph = header.value();
  run_part(demo, o,
           format("Search a graph of %s with %s of memory",
                  format_bytes(graph.size_bytes()).c_str(), format_bytes(o.budget_bytes).c_str()),
           format("Which packages of this distribution need each other (%s): %s packages, %s "
                  "dependencies; breadth first from %s, which has most (%s).",
                  std::filesystem::path(demo.edges).filename().c_str(),
                  format_count(static_cast<double>(graph.vertices)).c_str(),
                  format_count(static_cast<double>(graph.edges)).c_str(),
                  name_of(demo.edges, graph.source).c_str(),
                  format_count(static_cast<double>(graph.degree_max)).c_str()));
}

void search_rmat(Demo& demo) {
  Options o = base_options(demo);
  o.workload = "bfs";
  o.scale = demo.scale;
  const uint64_t about = (uint64_t{1} << o.scale) * o.edge_factor * 2 * sizeof(uint64_t);
  o.budget_bytes = std::max(about / 4, kMiB);
  run_part(demo, o,
           format("Search a made graph of about %s with %s of memory", format_bytes(about).c_str(),
                  format_bytes(o.budget_bytes).c_str()),
           format("R-MAT, 2^%u vertices, as social networks are; breadth first.", o.scale));
}

Status check_numbers(const Demo& demo) {
  if (demo.size_bytes < kSizeLeast || demo.size_bytes % 4096 != 0)
    return Error{EINVAL, "--size must be a multiple of 4 KiB, and 11 MiB or more"};
  if (!std::isfinite(demo.limit_seconds) || demo.limit_seconds < 0)
    return Error{EINVAL, "--limit must be a number of seconds, 0 (no limit) or more"};
  return {};
}

void tell_what_is_done(Demo& demo, bool has_groups) {
  const bench::Data place(base_options(demo), "outcore-demo");
  const std::string dir = std::filesystem::path(place.path()).parent_path();
  const bench::Device device = bench::device_of(dir);
  const std::string ahead = device.read_ahead_kb < 0
                                ? ""
                                : format(" (the kernel reads %lld KiB ahead there)",
                                         static_cast<long long>(device.read_ahead_kb));
  demo.page.machine =
      format("In %s on %s%s. %s; answers are verified outside the time measured.", dir.c_str(),
             device.name.c_str(), ahead.c_str(),
             has_groups ? "Each run has a memory cgroup of its own"
                        : "Memory cgroups cannot be made here, so mmap may use all memory");
  std::printf("Work on data four times larger than its memory, with default settings.\n%s\n",
              demo.page.machine.c_str());
}

void tell_what_columns_mean(bool has_groups) {
  std::printf(
      "\nfills: times a page had to be brought in (mmap: major faults, each of which may read many "
      "pages ahead).\nread, written: bytes from and to the device.%s\n"
      "Outcore chooses what leaves memory, and writes back only the 4 KiB that changed.\n",
      has_groups
          ? " peak memory: of the whole cgroup, the page cache and the\nprogram's own arrays "
            "included."
          : "");
}

// The next commands, by the name by which this one was called.
void save_page(Demo& demo) {
  demo.page.next = {
      {"make install PREFIX=$HOME/outcore", "library, command and compiler wrapper, to stay"},
      {"outcore check PROGRAM", "whether a program of yours can be helped, and why not"},
      {"outcore run --budget 1G -- PROGRAM ARGUMENTS",
       "the program as it is, its large files within 1 GiB; a table at the end says what was "
       "read"}};
  if (Status s = demo.page.save(demo.page_path); !s) {
    report(Error{s.code(), s.message()});
    demo.has_failed = true;
    return;
  }
  std::printf("\nA picture of it: %s\nTry next:\n", demo.page_path.c_str());
  for (const DemoCommand& command : demo.page.next)
    std::printf("  %-46s %s\n", command.line.c_str(), command.why.c_str());
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
  catch_interrupts();
  sort_words(demo);
  if (!demo.edges.empty()) search_edges(demo, count);
  if (demo.scale != 0) search_rmat(demo);
  tell_what_columns_mean(has_groups);
  if (!demo.is_limited)
    std::fprintf(stderr, "outcore: memory was not limited, so mmap had all of it: run as root\n");
  if (!demo.page_path.empty() && !demo.page.parts.empty()) save_page(demo);
  return demo.has_failed ? kFailed : 0;
}

}  // namespace

void add_demo(CommandSyntax& outcore) {
  auto demo = std::make_shared<Demo>();
  outcore
      .add("demo",
           "Sort files and search graphs of four times their memory, in Outcore and plain mmap")
      .option("--dir", demo->dir, "where the data is made (OUTCORE_BENCH_DIR, TMPDIR, /var/tmp)")
      .folder()
      .size("--size", demo->size_bytes, "bytes to sort (256M)")
      .option("--files", demo->files, "the folder whose files are sorted (/usr)")
      .folder()
      .option("--page", demo->page_path, "a file for the figures as a page to look at")
      .option("--edges", demo->edges, "a text file of edges, as tools/package_graph.py prints")
      .file()
      .option("--scale", demo->scale, "also an R-MAT graph of 2^scale vertices")
      .range(6, 30)
      .option("--threads", demo->threads, "threads (4)")
      .range(1, 256)
      .option("--limit", demo->limit_seconds, "seconds after which a run is stopped (60)")
      .footer("Example:\n  outcore demo --size 1G --page demo.html")
      .runs([demo] { return run_demo(*demo); });
}

}  // namespace outcore::cli
