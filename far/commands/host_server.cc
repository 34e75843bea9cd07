#include "far/commands/host_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/command.h"
#include "cli/text.h"

namespace outcore::cli {
namespace {

constexpr uint16_t kPortMin = 20'000, kPortMax = 32'767;  // below the ports of outgoing connections
constexpr size_t kLineBytesMax = 4096;
constexpr int kVersionMin = 7;
constexpr const char* kNoServer = "outcore-no-server";

// For a POSIX shell, in one line, without anything that a login shell would change within '…'. The
// configuration comes through the input, so that no list of processes shows the password. When the
// input or the server ends, the whole process group is ended. @ stands for the commands that wait
// for the end of the input.
constexpr const char* kScript =
    "PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin; LC_ALL=C; "
    "export PATH LC_ALL; exec 3<&0; "
    "c=$(while IFS= read -r l; do [ \"$l\" = . ] && break; echo \"$l\"; done; [ \"$l\" = . ]) || "
    "exit 1; "
    "for p in redis-server valkey-server none; do command -v $p >/dev/null 2>&1 && break; done; "
    "if [ $p = none ]; then echo outcore-no-server; exit 127; fi; "
    "{ @; kill -9 0; } <&3 >/dev/null 2>&1 & "
    "echo \"$c\" | $p - 2>&1 3<&-; kill -9 0";
constexpr const char* kWaitHere = "cat";
// A machine that is cut off or switched off closes nothing, so a line must come now and then.
constexpr const char* kWaitElsewhere =
    "if command -v timeout; then while timeout @ sh -c \"read l\"; do :; done; else cat; fi";

std::string with(std::string text, const std::string& part) {
  return text.replace(text.find('@'), 1, part);
}

uint16_t some_port() {
  uint16_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) number = 0;
  return static_cast<uint16_t>(kPortMin + number % (kPortMax - kPortMin + 1));
}

bool has(const std::string& line, const char* words) {
  return line.find(words) != std::string::npos;
}

// A line such as "12345:M 22 Nov 2026 10:53:44.740 * Ready …" without its prefix.
std::string words_of(const std::string& line) {
  constexpr size_t kPrefixMax = 48;
  if (line.empty() || std::isdigit(static_cast<unsigned char>(line[0])) == 0) return line;
  for (const char* mark : {" # ", " * ", " - ", " . "})
    if (const size_t at = line.find(mark); at < kPrefixMax) return line.substr(at + 3);
  return line;
}

// 0: the line has no version.
int major_version(const std::string& line) {
  static const std::string name = " version=";
  const size_t at = line.find(name);
  if (at == std::string::npos || !has(line, "bits=")) return 0;
  return static_cast<int>(std::strtoul(line.c_str() + at + name.size(), nullptr, 10));
}

[[noreturn]] void become(const std::vector<std::string>& words, int input, int output) {
  ::setpgid(0, 0);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  for (const int signal : {SIGPIPE, SIGINT, SIGHUP, SIGQUIT}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  const std::string why = words[0] + ": " + std::strerror(errno) + "\n";
  static_cast<void>(!::write(STDOUT_FILENO, why.data(), why.size()));
  ::_exit(127);
}

}  // namespace

HostServer::HostServer(ServerPlan plan, const ServerAccess& access)
    : plan_(std::move(plan)), access_(access), port_(some_port()) {}

HostServer::~HostServer() {
  end();
  close_pipes();
}

void HostServer::start(const HostServer* primary) {
  if (primary != nullptr) primary_ = primary->plan().address + " " + std::to_string(primary->port_);
  if (plan_.why_not.empty())
    launch();
  else
    fail(plan_.why_not);
}

void HostServer::launch() {
  state_ = State::kStarting;
  is_port_taken_ = false;
  last_line_.clear(), unread_.clear();
  ++ports_tried_;
  int in[2] = {-1, -1}, out[2] = {-1, -1};
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) {
    for (const int fd : in)
      if (fd != -1) ::close(fd);
    return fail(std::string("make a pipe: ") + std::strerror(errno));
  }
  const std::vector<std::string> words = command();
  process_ = ::fork();
  if (process_ == 0) become(words, in[0], out[1]);
  if (process_ > 0) ::setpgid(process_, process_);  // whoever comes first
  ::close(in[0]), ::close(out[1]);
  input_ = in[1], output_ = out[0];
  if (process_ < 0) return fail(std::string("fork: ") + std::strerror(errno));
  for (const int fd : {input_, output_}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  const std::string text = config() + ".\n";  // a pipe holds more
  static_cast<void>(!::write(input_, text.data(), text.size()));
}

std::vector<std::string> HostServer::command() const {
  if (plan_.is_started_here) return {"/bin/sh", "-c", with(kScript, kWaitHere)};
  const std::string wait = with(kWaitElsewhere, std::to_string(kPatienceSeconds));
  std::vector<std::string> words = access_.ssh;
  for (const char* option :
       {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=10", "ServerAliveCountMax=6",
        "ControlMaster=no", "ControlPath=none", "ClearAllForwardings=yes"})
    words.insert(words.end(), {"-o", option});
  words.insert(words.end(), {"-T", plan_.host.title(), "exec sh -c '" + with(kScript, wait) + "'"});
  return words;
}

// The server writes no files: a copy that synchronizes again keeps both data sets in memory.
std::string HostServer::config() const {
  std::string text =
      "port " + std::to_string(port_) + "\nbind " + plan_.address + "\nrequirepass " +
      access_.password + "\nmasterauth " + access_.password + "\nmaxmemory " +
      std::to_string(plan_.memory_bytes) +
      "\nmaxmemory-policy noeviction\nsave \"\"\nappendonly no\nprotected-mode yes\n"
      "databases 1\nloglevel notice\nlogfile \"\"\ndaemonize no\ndir /tmp\ntcp-keepalive 5\n"
      "repl-diskless-sync yes\nrepl-diskless-sync-delay 0\nrepl-diskless-load swapdb\n"
      "repl-ping-replica-period 1\nrepl-timeout 5\n"
      "client-output-buffer-limit replica 0 0 0\n";
  if (!primary_.empty()) text += "replicaof " + primary_ + "\n";
  return text;
}

void HostServer::read_output() {
  char text[4096];
  ssize_t n = 0;
  while (output_ != -1 && (n = ::read(output_, text, sizeof text)) > 0) {
    unread_.append(text, static_cast<size_t>(n));
    size_t at = 0;
    for (size_t end = 0; (end = unread_.find('\n', at)) != std::string::npos; at = end + 1)
      read_line(one_line(unread_.substr(at, end - at)));
    unread_.erase(0, at);
    if (unread_.size() > kLineBytesMax) unread_.resize(kLineBytesMax);
  }
  if (n == 0 && output_ != -1) on_end_of_output();
}

void HostServer::read_line(const std::string& line) {
  const std::string words = words_of(line);
  if (words.empty()) return;
  last_line_ = words;
  if (state_ != State::kStarting) return;
  const bool is_copy = plan_.copy_of != -1;
  if (line == kNoServer)
    fail("no redis-server there: install redis-server or valkey-server, 7.0 or newer");
  else if (const int version = major_version(line);
           (version != 0 && version < kVersionMin) || has(words, "Bad directive"))
    fail("its server is too old (" + words + "): install redis-server or valkey-server 7.0");
  else if (has(words, "Address already in use"))
    is_port_taken_ = true;
  else if (has(words, "Cannot assign requested address"))
    fail(plan_.address + " is not one of its own addresses: write one that it has");
  else if (has(words, is_copy ? "REPLICA sync: Finished with success" : "Ready to accept connect"))
    state_ = State::kUp, last_line_.clear();
}

void HostServer::on_end_of_output() {
  if (!unread_.empty()) read_line(one_line(unread_));
  if (output_ == -1) return;
  close_pipes();
  if (state_ == State::kUp) {
    state_ = State::kDead;
    why_ = last_line_;
  } else if (state_ == State::kStarting && is_port_taken_ && ports_tried_ < kPortsMax) {
    kill();
    port_ = port_ == kPortMax ? kPortMin : static_cast<uint16_t>(port_ + 1);
    launch();
  } else if (state_ == State::kStarting) {
    fail(last_line_.empty() ? "it ended without a word" : last_line_);
  }
}

void HostServer::beat() {
  if (!plan_.is_started_here && input_ != -1) static_cast<void>(!::write(input_, "\n", 1));
}

void HostServer::fail(const std::string& why) {
  state_ = State::kNever;
  why_ = why;
  close_pipes();  // first, because a process that cannot be killed (sudo) ends with its input
  kill();
}

void HostServer::end() {
  if (input_ != -1) ::close(input_);
  input_ = -1;
}

// The process remains a zombie until kill(), so its group keeps its number: a server may outlive
// its shell.
bool HostServer::is_gone() const {
  siginfo_t what{};
  return process_ <= 0 ||
         ::waitid(P_PID, static_cast<id_t>(process_), &what, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         what.si_pid == process_;
}

void HostServer::kill() {
  constexpr int kLooksMax = 200, kLookMs = 10;
  if (process_ <= 0) return;
  ::kill(-process_, SIGKILL);
  for (int look = 0; look < kLooksMax; ++look) {
    if (::waitpid(process_, nullptr, WNOHANG) != 0) break;
    ::poll(nullptr, 0, kLookMs);
  }
  process_ = -1;
}

void HostServer::close_pipes() {
  end();
  if (output_ != -1) ::close(output_);
  output_ = -1;
}

std::string HostServer::address() const {
  const bool is_v6 = plan_.address.find(':') != std::string::npos;
  return (is_v6 ? "[" + plan_.address + "]" : plan_.address) + ":" + std::to_string(port_);
}

}  // namespace outcore::cli
