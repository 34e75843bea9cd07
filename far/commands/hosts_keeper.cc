#include "far/commands/hosts_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "cli/command.h"
#include "cli/kept_descriptor.h"
#include "cli/text.h"
#include "far/commands/far_servers.h"

namespace outcore::cli {
namespace {

constexpr int kStartSeconds = 30;
constexpr int kEndSeconds = 10;
constexpr int kLookMs = 20;
constexpr size_t kSaidBytesMax = 4000;  // a pipe accepts so many bytes in one piece

using Clock = std::chrono::steady_clock;

int ms_until(Clock::time_point when) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
}

// The connections between the two processes.
struct Bonds {
  int program = -1;            // a pidfd of the process that becomes the program
  int lifeline[2] = {-1, -1};  // the servers are needed while the writing end is open anywhere
  int outcome[2] = {-1, -1};   // the result of the start, in lines: "U URI", "F FAILURE", "E ERROR"

  Status open() {
    program = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
    if (program == -1)
      return failure(errno, "watch when the program ends (pidfd_open)",
                     "allow that in the sandbox's system calls, or leave out --hosts");
    if (::pipe2(lifeline, O_CLOEXEC) != 0 || ::pipe2(outcome, O_CLOEXEC) != 0)
      return failure(errno, "make a pipe to the servers' keeper",
                     "raise the limit of open files (ulimit -n)");
    return {};
  }
  void close() {
    for (int* fd : {&program, &lifeline[0], &lifeline[1], &outcome[0], &outcome[1]}) {
      if (*fd != -1) ::close(*fd);
      *fd = -1;
    }
  }
};

// Keeps nothing of the program's files, signals and preloaded libraries. The working directory
// stays, because OUTCORE_SSH may name files.
void close_all_but(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned from = STDERR_FILENO + 1;
  bool is_done = true;
  for (const int fd : kept) {
    if (static_cast<unsigned>(fd) > from)
      is_done = ::close_range(from, static_cast<unsigned>(fd) - 1, 0) == 0 && is_done;
    from = static_cast<unsigned>(fd) + 1;
  }
  is_done = ::close_range(from, ~0U, 0) == 0 && is_done;
  if (is_done) return;
  // For older kernels, and sandboxes.
  constexpr int kMost = 65'536;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int end = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kMost));
  for (int fd = STDERR_FILENO + 1; fd < end; ++fd)
    if (!std::binary_search(kept.begin(), kept.end(), fd)) ::close(fd);
}

void leave_program(const std::vector<int>& kept) {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  close_all_but(kept);
  ::prctl(PR_SET_NAME, "outcore-hosts");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what the shells leave is reaped here: inits differ
  ::unsetenv("LD_PRELOAD");
  ::signal(SIGCHLD, SIG_DFL);
  for (const int signal : {SIGPIPE, SIGINT, SIGHUP, SIGQUIT, SIGTSTP}) ::signal(signal, SIG_IGN);
}

class HostsKeeper {
 public:
  HostsKeeper(const Bonds& bonds, const std::vector<ServerPlan>& plans,
              std::vector<std::string> ssh, const std::string& file)
      : servers_(plans, std::move(ssh)),
        file_(file),
        has_copies_(std::any_of(plans.begin(), plans.end(),
                                [](const ServerPlan& plan) { return plan.copy_of != -1; })),
        program_(bonds.program),
        lifeline_(bonds.lifeline[0]),
        outcome_(bonds.outcome[1]) {
    sigset_t asked;
    sigemptyset(&asked);
    sigaddset(&asked, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &asked, nullptr);
    signals_ = ::signalfd(-1, &asked, SFD_CLOEXEC);
  }

  void run() {
    if (start()) keep();
    end();
    if (is_asked_) say("the servers of " + file_ + " were told to end: what they held is lost");
  }

 private:
  // Returns whether there is something to keep.
  bool start() {
    servers_.start();
    const auto until = Clock::now() + std::chrono::seconds(kStartSeconds);
    while (!servers_.is_settled() && is_needed_ && ms_until(until) != 0) {
      wait(ms_until(until));
      servers_.read_output();
    }
    if (!is_needed_) return false;
    servers_.give_up(kStartSeconds);
    const std::vector<std::string> failures = servers_.failures();
    const bool is_enough = servers_.has_one() && (failures.empty() || !has_copies_);
    if (is_enough) {
      for (const std::string& failure : failures) tell('F', failure);
      tell('U', servers_.uri());
    } else {
      std::string all;
      for (const std::string& failure : failures) all += (all.empty() ? "" : "; ") + failure;
      tell('E', (servers_.has_one() ? "with copies every host of " + file_ + " must be there: "
                                    : "no host of " + file_ + " gives memory: ") +
                    all);
    }
    ::close(outcome_);
    return is_enough;
  }

  void keep() {
    while (is_needed_) {
      wait(servers_.has_elsewhere() ? HostServer::kBeatSeconds * 1000 / 2 : -1);
      for (const std::string& lost : servers_.read_output()) say(lost);
      servers_.beat();
    }
  }

  void end() {
    servers_.give_up(0);
    servers_.end();
    const auto until = Clock::now() + std::chrono::seconds(kEndSeconds);
    while (!servers_.are_gone() && ms_until(until) != 0) {
      std::vector<pollfd> outputs;
      servers_.add_outputs(&outputs);
      ::poll(outputs.data(), outputs.size(), kLookMs);
      servers_.read_output();
    }
    servers_.kill();
    while (ms_until(until) != 0 && ::waitpid(-1, nullptr, WNOHANG) != -1) ::poll(nullptr, 0, 1);
  }

  // Waits for the program, its children, output of a server, or SIGTERM.
  void wait(int ms) {
    std::vector<pollfd> all{{signals_, POLLIN, 0}, {program_, POLLIN, 0}, {lifeline_, POLLIN, 0}};
    servers_.add_outputs(&all);
    if (::poll(all.data(), all.size(), ms) <= 0) return;
    is_asked_ = all[0].revents != 0;
    for (const size_t i : {1, 2})
      if (all[i].revents != 0) (i == 1 ? program_ : lifeline_) = -1;  // poll ignores -1
    // Others who read the program's standard error must not wait for us.
    if (program_ == -1) ::dup2(STDIN_FILENO, STDERR_FILENO);
    is_needed_ = !is_asked_ && (program_ != -1 || lifeline_ != -1);
  }

  void tell(char kind, const std::string& text) const {
    const std::string line = kind + (" " + one_line(text)) + "\n";
    for (size_t at = 0; at < line.size();) {
      const ssize_t n = ::write(outcome_, line.data() + at, line.size() - at);
      if (n < 0 && errno != EINTR) return;  // nobody reads any more
      at += n > 0 ? static_cast<size_t>(n) : 0;
    }
  }
  // What cannot be written is left out: while this process waits here it keeps no servers.
  static void say(const std::string& text) {
    const std::string line = "outcore: " + one_line(text).substr(0, kSaidBytesMax) + "\n";
    pollfd standard{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&standard, 1, 0) == 1 && (standard.revents & POLLOUT) != 0)
      static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
  }

  FarServers servers_;
  const std::string file_;
  const bool has_copies_;
  int program_, lifeline_, outcome_, signals_ = -1;
  bool is_needed_ = true, is_asked_ = false;
};

std::vector<std::string> ssh_words() {
  const char* const given = std::getenv("OUTCORE_SSH");
  std::vector<std::string> words = split(given == nullptr ? "" : given, ' ');
  if (words.empty()) words.emplace_back("ssh");
  return words;
}

Result<KeptServers> read_outcome(int fd) {
  std::string text;
  char part[4096];
  for (ssize_t n = 0; (n = ::read(fd, part, sizeof part)) != 0;) {
    if (n < 0 && errno != EINTR) break;
    text.append(part, n > 0 ? static_cast<size_t>(n) : 0);
  }
  KeptServers kept;
  for (const std::string& line : split(text, '\n')) {
    const std::string rest = line.substr(std::min<size_t>(line.size(), 2));
    if (line[0] == 'U') kept.uri = rest;
    if (line[0] == 'F') kept.failures.push_back(rest);
    if (line[0] == 'E') return Error{EHOSTUNREACH, rest};
  }
  if (kept.uri.empty())
    return Error{EHOSTUNREACH, "start servers: the process that keeps them ended; try again"};
  return kept;
}

}  // namespace

Result<KeptServers> keep_servers(const std::vector<ServerPlan>& plans, const std::string& file) {
  Bonds bonds;
  if (Status status = bonds.open(); !status) {
    bonds.close();
    return status.error();
  }
  const std::vector<std::string> ssh = ssh_words();
  // Forks twice, so that the program never has a child that it did not make.
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    if (::fork() != 0) ::_exit(0);
    leave_program({bonds.program, bonds.lifeline[0], bonds.outcome[1]});
    HostsKeeper(bonds, plans, ssh, file).run();
    ::_exit(0);
  }
  const int why = errno;
  ::close(bonds.outcome[1]);
  bonds.outcome[1] = -1;
  while (child > 0 && ::waitpid(child, nullptr, 0) == -1 && errno == EINTR) continue;
  Result<KeptServers> kept =
      child > 0 ? read_outcome(bonds.outcome[0])
                : Result<KeptServers>(failure(why, "make a process that keeps the servers",
                                              "raise the limit of processes (ulimit -u)"));
  if (kept) bonds.lifeline[1] = (keep_descriptor(bonds.lifeline[1]), -1);
  bonds.close();
  return kept;
}

}  // namespace outcore::cli
