// outcore stat: one process in lines for scripts, in the manner of vmstat.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/interrupts.h"
#include "cli/json.h"
#include "cli/output_file.h"
#include "cli/text.h"
#include "sight/commands/observed.h"
#include "sight/commands/watch.h"
#include "sight/commands/watch_json.h"

namespace outcore::cli {
namespace {

struct Words {
  std::string process, interval, count;
  bool has_files = false, is_json = false;
};

struct Plan {
  pid_t pid = 0;
  std::optional<std::chrono::milliseconds> interval;  // none: totals, once
  uint64_t count = 0;                                 // 0: until it ends
};

Result<Plan> plan_of(const Words& words) {
  Plan plan;
  if (!words.interval.empty()) {
    const auto interval = parse_interval(words.interval);
    if (!interval) return interval.error();
    plan.interval = interval.value();
  }
  if (!words.count.empty()) {
    char* end = nullptr;
    errno = 0;
    plan.count = std::strtoull(words.count.c_str(), &end, 10);
    const bool is_number = words.count.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number || errno != 0 || *end != 0 || plan.count == 0)
      return Error{EINVAL, "'" + words.count +
                               "' is not a number of lines: write one of 1 or more, as in 60"};
  }
  const Result<pid_t> pid = find_process(words.process);
  if (!pid) return pid.error();
  plan.pid = pid.value();
  return plan;
}

// -- Lines --

constexpr double kMiB = 1 << 20;

void print_header(const Plan& plan, const Words& words) {
  const bool is_total = !plan.interval;
  const char* const per = is_total ? "" : "/s";
  const auto title = [&](const char* name) { return std::string(name) + per; };
  std::printf("%8s %10s %10s %8s %10s %11s %10s %10s %8s %8s %9s", is_total ? "stall_s" : "stall%",
              title("faults").c_str(), title("fills").c_str(), "refault%",
              title("read_MiB").c_str(), title("write_MiB").c_str(), title("evict").c_str(),
              title("wback").c_str(), "p50_us", "p99_us",
              words.has_files ? "here_MiB" : "used_MiB");
  std::printf(" %9s%s\n", words.has_files ? "size_MiB" : "limit_MiB",
              words.has_files ? "  file" : "");
}

// A rate of each number, or itself if it is a total.
void print_line(const Change& change, bool is_total, uint64_t used_bytes, uint64_t limit_bytes,
                const std::string& file) {
  const double seconds = is_total ? 1 : change.seconds;
  const auto rate = [&](uint64_t count) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  };
  const Counters& c = change.counters;
  const auto us = [&](double share) {
    return static_cast<double>(change.latency.percentile_ns(share)) / 1e3;
  };
  const double stalled = rate(waited_ns(c)) / 1e9 * (is_total ? 1 : 100);
  const bool is_known = is_total || change.is_stall_known();
  std::printf("%8s %10.0f %10.0f %8.1f %10.1f %11.1f %10.0f %10.0f %8.1f %8.1f %9.1f %9.1f%s\n",
              is_known ? format("%.1f", stalled).c_str() : "-", rate(waits(c)),
              rate(change.filled()), change.refault_share() * 100, rate(c.read_bytes) / kMiB,
              rate(c.written_bytes) / kMiB, rate(c.evictions), rate(c.write_backs), us(0.5),
              us(0.99), static_cast<double>(used_bytes) / kMiB,
              static_cast<double>(limit_bytes) / kMiB,
              file.empty() ? "" : ("  " + one_line(file)).c_str());
}

void print_process(const Plan& plan, const Words& words, const ProcessView& process) {
  const bool is_total = !plan.interval;
  if (!words.has_files) {
    const Change all{0, process.counters, process.latency};
    print_line(is_total ? all : process.change, is_total, process.used_bytes, process.budget_bytes,
               "");
    return;
  }
  process.for_each_store([&](const StoreView& store) {
    const Change all{0, store.now.counters, store.now.fault_latency};
    print_line(is_total ? all : store.change, is_total, store.now.resident_bytes,
               store.now.size_bytes, store.now.uri);
  });
}

void print_json(const Words& words, const ProcessView& process) {
  const auto now_ns = std::chrono::system_clock::now().time_since_epoch();
  const double now = std::chrono::duration<double>(now_ns).count();
  if (!words.has_files) {
    Json json = json_of(process);
    json["time"] = now;
    show_json(json);
    return;
  }
  process.for_each_store([&](const StoreView& store) {
    Json json = json_of(store);
    json["time"] = now;
    json["pid"] = static_cast<int64_t>(process.pid);
    show_json(json);
  });
}

// -- The command --

// A descriptor that tells when the process ends; -1: the kernel has none (Linux before 5.3).
class ProcessEnd {
 public:
  explicit ProcessEnd(pid_t pid) : fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  ~ProcessEnd() {
    if (fd_ >= 0) ::close(fd_);
  }
  ProcessEnd(const ProcessEnd&) = delete;
  ProcessEnd& operator=(const ProcessEnd&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

int tell_end(const Plan& plan) {
  std::fprintf(stderr, "outcore: process %d has ended\n", static_cast<int>(plan.pid));
  return 0;
}

int follow(const Plan& plan, const Words& words, Watch& watch, const ProcessEnd& end) {
  for (uint64_t lines = 0; plan.count == 0 || lines < plan.count; ++lines) {
    const Waited waited = wait_for(*plan.interval, end.fd(), STDOUT_FILENO);
    if (waited == Waited::kInterrupted || waited == Waited::kNoReader) return 0;
    if (waited == Waited::kProcessEnded) return tell_end(plan);
    if (const Status seen = watch.look(); !seen.ok()) {
      // It may be there without its runtime: it has run another program, or ended that.
      if (seen.code() == ESRCH || seen.code() == ENOENT || seen.code() == EACCES)
        return tell_end(plan);
      return report(seen.error());
    }
    if (words.is_json)
      print_json(words, watch.processes().front());
    else
      print_process(plan, words, watch.processes().front());
    if (std::fflush(stdout) != 0) return note_failed_output(), 0;  // main() tells
  }
  return 0;
}

int run(const Words& words) {
  const Result<Plan> plan = plan_of(words);
  if (!plan) return report(plan.error());
  catch_interrupts();
  const ProcessEnd end(plan->pid);
  Watch watch({plan->pid});
  if (const Status seen = watch.look(); !seen.ok()) return report(seen.error());
  if (!words.is_json) print_header(plan.value(), words);
  if (plan->interval) {
    if (std::fflush(stdout) != 0) return note_failed_output(), 0;
    return follow(plan.value(), words, watch, end);
  }
  if (words.is_json)
    print_json(words, watch.processes().front());
  else
    print_process(plan.value(), words, watch.processes().front());
  return 0;
}

}  // namespace

void add_stat(CommandSyntax& outcore) {
  const auto words = std::make_shared<Words>();
  outcore.add("stat", "A line of figures of a running process, now or each interval")
      .word("process", words->process, "its number, or its program's base name if only one has it")
      .type("PID|NAME")
      .optional_word("interval", words->interval, "seconds, or as in 500ms; none: totals, once")
      .type("INTERVAL")
      .optional_word("count", words->count, "lines; none: until the process ends")
      .type("COUNT")
      .flag("--files", words->has_files, "a line for each of its files and other stores")
      .flag("--json", words->is_json, "an object a line, with all counters")
      .footer(
          "stall%: time in faults and calls that wait for pages, of all threads, 100 for one that\n"
          "does nothing else; faults: those, and pages that calls waited for;\n"
          "fills: pages brought in; refault%: those of them that had been in memory before;\n"
          "p50, p99: of the faults of the interval. No more than the process counts anyway is\n"
          "read: it is not slowed down, and does not notice.\n"
          "Exit status: 0 done, or the process has ended; 1 it cannot be looked at; 2 usage.\n"
          "Examples:\n  outcore stat kraken2 1\n  outcore stat 4711 500ms 20 --files\n"
          "  outcore stat 4711 --json | jq .counters.read_bytes")
      .runs([words] { return run(*words); });
}

}  // namespace outcore::cli
