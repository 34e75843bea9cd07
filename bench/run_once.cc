// One run: fork, limit, watch, verify.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "bench/clock.h"
#include "bench/medium.h"
#include "bench/progress.h"
#include "bench/runner.h"
#include "bench/shared_object.h"
#include "bench/swap_file.h"
#include "cli/interrupts.h"
#include "cli/text.h"
#include "outcore/buffers.h"
#include "outcore/store_catalog.h"

namespace outcore::bench {
namespace {

// A process of the run, as the parent sees it.
struct Child {
  pid_t id = -1;
  int pipe = -1;
  std::string said;
  int status = 0;
};

[[noreturn]] void run_child(Workload& workload, const Options& options, const std::string& memory,
                            unsigned process, Board& board, const MemoryGroup& group, int pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Stage stage(options, memory, process, board, group, workload.mapped_bytes());
  Status status = group.join();
  if (status) status = workload.run(stage);
  std::string text = stage.result().to_wire();
  if (!status) {
    board.has_failed = true;
    text = cli::Json{{"error", status.message()}, {"code", status.code()}}.dump();
  }
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = write(pipe, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) _exit(3);
    if (n > 0) at += static_cast<size_t>(n);
  }
  // No destructors: what the parent holds (files, groups) is the parent's.
  _exit(status ? 0 : 1);
}

Result<std::vector<Child>> fork_children(Workload& workload, const Options& options,
                                         const std::string& memory, Board& board,
                                         const MemoryGroup& group) {
  std::vector<Child> children(options.processes);
  std::fflush(nullptr);
  for (unsigned process = 0; process < options.processes; ++process) {
    int ends[2];
    if (pipe(ends) != 0) return cli::failure(errno, "make a pipe");
    const pid_t id = fork();
    if (id < 0) return cli::failure(errno, "fork");
    if (id == 0) {
      close(ends[0]);
      run_child(workload, options, memory, process, board, group, ends[1]);
    }
    close(ends[1]);
    children[process].id = id;
    children[process].pipe = ends[0];
  }
  return children;
}

// Reads what the children say until they are done. True if the time limit ended them.
bool watch(std::vector<Child>& children, const Options& options, Board& board, Progress& progress) {
  static constexpr int kPollMs = 100;
  static constexpr double kFlushTimesMax = 10;  // the limit
  bool is_stopped = false;
  size_t open = children.size();
  while (open != 0) {
    std::vector<pollfd> waits;
    waits.reserve(children.size());
    for (const Child& child : children) waits.push_back({child.pipe, POLLIN, 0});
    poll(waits.data(), waits.size(), kPollMs);
    for (size_t i = 0; i < children.size(); ++i) {
      if (children[i].pipe < 0 || waits[i].revents == 0) continue;
      char text[16384];
      const ssize_t n = read(children[i].pipe, text, sizeof text);
      if (n < 0 && errno == EINTR) continue;
      if (n > 0) children[i].said.append(text, static_cast<size_t>(n));
      if (n > 0) continue;
      close(children[i].pipe);
      children[i].pipe = -1;
      --open;
      // A child that died said nothing; the others must not wait for it.
      if (children[i].said.empty()) board.has_failed = true;
    }
    if (cli::is_interrupted())
      for (const Child& child : children) kill(child.id, SIGKILL);
    const uint64_t started = board.started_ns.load();
    if (started == 0) continue;
    const double seconds = seconds_since(started);
    const uint64_t done = board.done.load(), total = board.total.load();
    progress.show(done, total, seconds);
    const bool is_over = options.limit_seconds > 0 && seconds > options.limit_seconds;
    // What has done its work but is still flushing may end, in due time.
    const bool is_hung = is_over && seconds > kFlushTimesMax * options.limit_seconds;
    if (is_over && !is_stopped && (done < total || is_hung)) {
      is_stopped = true;
      for (const Child& child : children) kill(child.id, SIGKILL);
    }
  }
  for (Child& child : children)
    while (waitpid(child.id, &child.status, 0) < 0 && errno == EINTR) continue;
  return is_stopped;
}

std::string end_of(const Child& child, const MemoryGroup& group) {
  if (group.kills() != 0)
    return "the run needed more memory than its limit of " +
           cli::format_bytes(group.limit_bytes()) + ", and the kernel ended it";
  if (WIFSIGNALED(child.status))
    return cli::format("the run died of signal %d (%s)", WTERMSIG(child.status),
                       sigdescr_np(WTERMSIG(child.status)));
  return "the run ended without a result";
}

Result<RunResult> merge(const std::vector<Child>& children, const MemoryGroup& group) {
  std::optional<RunResult> all;
  Error first_error;
  for (const Child& child : children) {
    const cli::Json said = cli::Json::parse_or_null(child.said);
    std::optional<RunResult> one = RunResult::from_wire(said);
    if (!one) {
      const Error error = said.contains("error")
                              ? Error{said.value("code", EIO), said.value("error", "")}
                              : Error{ECHILD, end_of(child, group)};
      // A process that only waited for another is not the cause.
      if (first_error.code == 0 || first_error.code == ECANCELED) first_error = error;
      continue;
    }
    if (!all) {
      all = one;
      continue;
    }
    all->seconds = std::max(all->seconds, one->seconds);
    all->work += one->work;
    all->fills += one->fills;
    all->read_bytes += one->read_bytes;
    all->written_bytes += one->written_bytes;
    all->latency.merge(one->latency);
    for (const auto& [key, value] : one->extra)
      if (value.is_count() && all->extra.contains(key))
        all->extra[key] = all->extra.value(key, uint64_t{0}) + value.get(uint64_t{0});
  }
  if (first_error.code != 0) return first_error;
  return *all;
}

// What sets this run apart from others of its workload, beside sizes and threads.
std::string variant_of(const Options& options) {
  std::string variant;
  const auto add = [&](bool is_so, const std::string& what) {
    if (is_so) variant += (variant.empty() ? "" : ", ") + what;
  };
  add(options.workload == "map-lookup", options.structure);
  add(options.workload == "kmers", options.index);
  add(options.is_of_lookups, "look-ups");
  add(options.genomes != nullptr, "real genomes");
  add(options.is_top_pinned, "top pinned");
  add(options.has_prefetch_lists, "prefetch lists");
  add(options.workload == "ycsb", "mix " + options.mix);
  add(options.table == "heap", "table in a heap");
  add(options.workload == "matmul", options.order);
  add(!options.nas_class.empty(), "class " + options.nas_class);
  add(options.tile != 0, "tiles of " + std::to_string(options.tile));
  add(options.write_percent != 0, std::to_string(options.write_percent) + " % writes");
  add(options.stride > 1, "every " + std::to_string(options.stride) + " pages");
  add(options.is_backward, "backward");
  add(options.passes > 1, std::to_string(options.passes) + " passes");
  add(options.loops != 0, std::to_string(options.loops) + " passes");
  add(options.distribution != "uniform", options.distribution);
  add(options.is_fully_external, "fully external");
  add(options.is_asynchronous, "asynchronous");
  add(options.is_overlapping, "overlapping");
  add(options.allocator == "own", "own allocator");
  add(options.allocator == "boost", "boost's allocator");
  add(options.is_warm, "warm");
  return variant;
}

// The swap space that a run in `memory` has beside its data; none for most.
Result<SwapFile> swap_for(const Workload& workload, const std::string& memory,
                          const MemoryGroup& group, const std::string& why_unlimited) {
  if (memory != "swap") return SwapFile();
  if (!group.is_real())
    return Error{EPERM, "swap needs a memory limit: " + why_unlimited + "; or leave it out"};
  const auto folder = std::filesystem::path(path_of(workload.uri())).parent_path();
  auto swap = SwapFile::make(folder.empty() ? "." : folder.string(), workload.mapped_bytes());
  if (!swap) return swap;
  if (Status s = group.allow_swap(); !s) return s.error();
  return swap;
}

// As asked, with a name for the buffer of this run if its processes share one.
Options with_buffer(const Options& asked, const std::string& memory) {
  static std::atomic<unsigned> next{0};
  Options options = asked;
  if (!options.is_shared || !is_outcore(memory)) return options;
  options.buffer = cli::format("outcore-bench-%d-%u", getpid(), next++);
  // A file that has changed within the last 20 ms is not shared: a further change could not be
  // told (docs/guides/run.md).
  usleep(25'000);
  return options;
}

}  // namespace

Result<RunResult> run_once(Workload& workload, const Options& options, const std::string& memory) {
  Progress progress(options.workload + " " + memory);
  if (cli::is_interrupted()) return Error{EINTR, "interrupted"};
  progress.say("making the data");
  if (Status s = workload.prepare_for(memory); !s) return s.error();
  workload.forget();
  if (cli::is_interrupted()) return Error{EINTR, "interrupted"};
  const SharedObject<Board> board;
  if (board.get() == nullptr) return cli::failure(errno, "map a page");
  MemoryGroup group;
  std::string why_unlimited;
  if (!options.is_unlimited && !memory.starts_with("dram") && memory != "malloc") {
    auto made = MemoryGroup::make();
    if (made)
      group = std::move(made).value();
    else
      why_unlimited = made.message();
  }
  auto swap = swap_for(workload, memory, group, why_unlimited);
  if (!swap) return swap.error();
  auto children =
      fork_children(workload, with_buffer(options, memory), memory, *board.get(), group);
  if (!children) return children.error();
  const bool is_stopped = watch(*children, options, *board.get(), progress);
  // It removes what processes that have ended left of their buffer: children run no destructors.
  if (options.is_shared) (void)list_buffers();
  if (cli::is_interrupted()) return Error{EINTR, "interrupted"};
  progress.say("verifying");

  RunResult result;
  if (is_stopped) {
    result.is_stopped = true;
    result.seconds = options.limit_seconds;
    result.stop_reason = cli::format("> %.0f s, stopped", options.limit_seconds);
  } else if ((memory.starts_with("mmap") || memory == "swap") && group.kills() != 0) {
    // Not a failure of ours: the kernel reads ahead more than the rival may hold.
    result.is_stopped = true;
    result.stop_reason =
        "ended by the kernel: it needs more than its " + cli::format_bytes(group.limit_bytes());
  } else {
    auto merged = merge(*children, group);
    if (!merged) return merged.error();
    result = std::move(merged).value();
  }
  result.started_ns = board.get()->started_ns.load();
  result.workload = options.workload;
  result.memory = memory;
  result.store = without_password(workload.uri());
  const Device device = device_of(workload.uri());
  result.device = device.name;
  result.extra["read_ahead_kb"] = device.read_ahead_kb;
  if (const std::string variant = variant_of(options); !variant.empty())
    result.extra["variant"] = variant;
  result.data_bytes = workload.data_bytes();
  result.budget_bytes = options.budget_bytes;
  result.threads = options.threads;
  result.processes = options.processes;
  result.is_limited = group.is_real();
  result.peak_bytes = group.peak_bytes();
  result.extra["own_bytes"] = board.get()->own_bytes.load();
  result.extra["limit_bytes"] = board.get()->limit_bytes.load();
  if (!why_unlimited.empty()) result.extra["unlimited_because"] = why_unlimited;
  group = MemoryGroup();
  if (Status s = workload.check(result); !s) return s.error();
  result.is_checked = !result.is_stopped;
  return result;
}

}  // namespace outcore::bench
