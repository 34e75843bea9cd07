#include "run/commands/watched_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <set>
#include <utility>

#include "cli/command.h"
#include "cli/output_file.h"
#include "cli/text.h"
#include "run/commands/run_options.h"
#include "sight/commands/export.h"
#include "sight/commands/last_record.h"
#include "sight/commands/record_lines.h"
#include "sight/commands/report.h"

namespace outcore::cli {
namespace {

constexpr timespec kRefresh{1, 0};
// A program that ends early is seen all the same, and one that leaves all to the kernel costs
// little: as long as nothing is seen, each pause is twice as long as the last.
constexpr long kFirstPauseNs = 50'000'000, kLastPauseNs = 800'000'000;

// What the program gives up, this process does not hold: pipes, locks. All but standard error and
// `kept`.
void let_go_of_files(int kept) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing >= 0) {
    ::dup2(nothing, STDIN_FILENO);
    ::dup2(nothing, STDOUT_FILENO);
  }
  if (kept > 3) ::close_range(3, static_cast<unsigned>(kept) - 1, 0);
  ::close_range(static_cast<unsigned>(std::max(kept, 2)) + 1, ~0U, 0);
}

// Of the run of this process: its children have the variable, too.
bool is_of_run(pid_t process, pid_t root) {
  if (process == root) return true;  // it may have written its title over its environment
  std::ifstream file("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  const std::string wanted = std::string("OUTCORE_RUN_ROOT=") + std::to_string(root);
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\0', at), all.size());
    if (all.compare(at, end - at, wanted) == 0) return true;
    at = end + 1;
  }
  return false;
}

// What the terminal sends comes to the whole group; what is sent to this process alone is meant for
// the program.
void forward(const siginfo_t& signal, pid_t program) {
  if (signal.si_code == SI_KERNEL) return;
  ::kill(program, signal.si_signo);
}

// To stop discards a SIGCONT that is pending: both would stay stopped.
void stop_until_continued(pid_t program) {
  sigset_t continued;
  sigemptyset(&continued);
  sigaddset(&continued, SIGCONT);
  constexpr timespec kNoWait{0, 0};
  siginfo_t signal{};
  if (::sigtimedwait(&continued, &signal, &kNoWait) < 0)
    ::kill(::getpid(), SIGSTOP);
  else
    forward(signal, program);
}

std::string end_of(int status) {
  if (!WIFSIGNALED(status)) return "ended without exit(): by _exit(), or as another program";
  const int signal = WTERMSIG(status);
  const char* const name = ::strsignal(signal);
  return "ended by signal " + std::to_string(signal) +
         (name == nullptr ? "" : " (" + std::string(name) + ")");
}

// All signals are blocked, and the end of children is told of: whoever starts this may ignore it,
// and then nobody could wait for them. The program, and a watcher that fails, have both as before.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, &mask_before_);
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    ::sigaction(SIGCHLD, &usual, &children_before_);
  }
  ~HeldSignals() {
    if (is_kept_) return;
    ::sigaction(SIGCHLD, &children_before_, nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  void keep() { is_kept_ = true; }

 private:
  sigset_t mask_before_{};
  struct sigaction children_before_ {};
  bool is_kept_ = false;
};

// The program does not begin before its watcher does; if there is none, it does not run.
class Gate {
 public:
  Gate() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) ends_[0] = ends_[1] = -1;
  }
  ~Gate() { close(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  bool is_open() const { return ends_[0] >= 0; }  // if not, errno says why
  // In the program. False: the watcher has ended, or has closed it.
  bool wait() {
    char word = 0;
    ::close(std::exchange(ends_[1], -1));
    return ::read(ends_[0], &word, 1) == 1;
  }
  // In the watcher: the descriptor by which it will open. REQUIRES: it is_open().
  int watcher_end() {
    if (ends_[0] >= 0) ::close(std::exchange(ends_[0], -1));
    return ends_[1];
  }
  void open() {
    static_cast<void>(::write(ends_[1], "x", 1));
    ::close(std::exchange(ends_[1], -1));
  }
  void close() {
    for (int& end : ends_)
      if (end >= 0) ::close(std::exchange(end, -1));
  }

 private:
  int ends_[2];
};

// As the program was: without a second core file.
[[noreturn]] void end_by(int signal) {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
  ::_exit(128 + signal);
}

}  // namespace

Result<std::unique_ptr<WatchedRun>> WatchedRun::prepare(const std::optional<std::string>& page,
                                                        const std::optional<std::string>& metrics) {
  std::unique_ptr<WatchedRun> run(new WatchedRun);
  run->page_ = page;
  run->metrics_ = metrics;
  if (!page) return run;
  if (Status s = check_output(*page, HowWritten::kReplaced, "report to " + *page); !s)
    return Error{s.code(), s.message()};
  const char* const folder = std::getenv("TMPDIR");
  std::string path =
      absolute(folder != nullptr && *folder != 0 ? folder : "/tmp") + "/outcore-XXXXXX.json";
  const int file = ::mkostemps(path.data(), 5, O_CLOEXEC);
  if (file < 0)
    return failure(errno,
                   "make a temporary file for the report in " + path.substr(0, path.rfind('/')),
                   "set TMPDIR to a folder that you may write to");
  ::close(file);
  run->records_ = path;
  ::setenv("OUTCORE_REPORT", path.c_str(), 1);
  return run;
}

WatchedRun::~WatchedRun() { remove_records(); }

void WatchedRun::remove_records() {
  if (!records_.empty()) static_cast<void>(::unlink(records_.c_str()));
  records_.clear();
}

Result<std::optional<int>> WatchedRun::start() {
  HeldSignals signals;
  Gate gate;
  const pid_t program = gate.is_open() ? ::fork() : -1;
  if (program < 0)
    return failure(errno, "start the program beside its watcher",
                   "raise ulimit -u and -n, or end other processes");
  if (program == 0) {
    records_.clear();  // the watcher's
    if (!gate.wait()) ::_exit(kFailed);
    return std::optional<int>();
  }
  let_go_of_files(gate.watcher_end());
  std::unique_ptr<MetricsExport> exported;
  if (metrics_) {
    auto started = MetricsExport::start(
        *metrics_, [program](pid_t process) { return is_of_run(process, program); });
    if (!started) {
      gate.close();
      static_cast<void>(::waitpid(program, nullptr, 0));
      return started.error();
    }
    exported = std::move(started).value();
    if (std::getenv("OUTCORE_RUN_QUIET") == nullptr)  // the system may have chosen the port
      std::fprintf(stderr, "outcore: metrics at %s\n", exported->place().c_str());
  }
  gate.open();
  // What comes now and is not forwarded any more shall not change how this process ends.
  signals.keep();
  LastRecord last(program);
  const int status = stay(program, exported.get(), &last);
  // What it told is over, in a file, too; to stop the server would take a second.
  if (exported != nullptr) exported->refresh_or_tell();
  static_cast<void>(exported.release());
  if (!records_.empty()) {
    try {
      make_report(status, last);
    } catch (const std::bad_alloc&) {  // the end of the program is told all the same
      report(failure(ENOMEM, "make the report", "outcore report " + records_ + " -o FILE.html"));
      records_.clear();
    }
  }
  if (WIFSIGNALED(status)) end_by(WTERMSIG(status));
  return std::optional<int>(WEXITSTATUS(status));
}

// Until the program has ended: its status.
int WatchedRun::stay(int program, MetricsExport* exported, LastRecord* last) const {
  sigset_t all;
  sigfillset(&all);
  timespec pause{0, kFirstPauseNs};
  while (true) {
    siginfo_t signal{};
    const bool is_waiting = page_ && pause.tv_sec == 0 && !last->has_seen_files();
    const int got = ::sigtimedwait(&all, &signal, is_waiting ? &pause : &kRefresh);
    if (got < 0) {
      if (is_waiting)
        pause = pause.tv_nsec < kLastPauseNs ? timespec{0, 2 * pause.tv_nsec} : kRefresh;
      if (page_) last->look();
      if (exported != nullptr) exported->refresh_or_tell();
      continue;
    }
    if (got != SIGCHLD) {
      if (page_) last->look();  // it may be the end of the program
      forward(signal, program);
      continue;
    }
    int status = 0;
    const pid_t changed = ::waitpid(program, &status, WNOHANG | WUNTRACED);
    if (changed != program) continue;
    if (!WIFSTOPPED(status)) return status;
    // Stopped by its terminal: so is this process, until the shell goes on with both. Who stops the
    // program alone, by SIGSTOP, will go on with the program alone.
    const int by = WSTOPSIG(status);
    if (by == SIGTSTP || by == SIGTTIN || by == SIGTTOU) stop_until_continued(program);
  }
}

// Of runtimes that could not write their record: what they had counted.
void WatchedRun::add_last_records(int status, const LastRecord& last) const {
  std::set<uint64_t> recorded;
  bool is_cut_short = false;
  RecordLines lines(records_);
  for (std::string line; lines.next(&line);) {
    is_cut_short = !lines.is_whole();
    if (!is_cut_short) recorded.insert(started_ns_of(line));
  }
  std::ofstream more(records_, std::ios::binary | std::ios::app);
  if (is_cut_short) more << '\n';
  for (const Json& record :
       last.make(WIFSIGNALED(status) ? "was " + end_of(status) : end_of(status), recorded))
    more << record.dump() << '\n';
}

void WatchedRun::make_report(int status, const LastRecord& last) {
  struct stat about {};
  add_last_records(status, last);
  if (::stat(records_.c_str(), &about) == 0 && about.st_size != 0) {
    if (Status s = write_report(records_, *page_, true); !s) {
      report(Error{s.code(), s.message()});
      report(Error{s.code(), "the record is kept: outcore report " + records_ + " -o FILE.html"});
      records_.clear();
      return;
    }
  } else if (WIFSIGNALED(status)) {
    report(Error{ENOENT, "no report: the program was " + end_of(status) +
                             ", and had brought in no page yet"});
  } else if (!WIFEXITED(status) || (WEXITSTATUS(status) != 126 && WEXITSTATUS(status) != 127)) {
    report(Error{ENOENT,
                 "no report: no process of the run wrote a record: it is written at exit(), not by "
                 "one that goes on beside; nor by one whose mappings all stay with the kernel "
                 "(--explain says which)"});
  }
  remove_records();
}

}  // namespace outcore::cli
