#include "sight/commands/running_program.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <fstream>
#include <set>

#include "cli/text.h"
#include "sight/commands/process_facts.h"

namespace outcore::cli {
namespace {

constexpr size_t kAskedAtOnceMax = 256;  // a file each, and a process may have 1024
constexpr size_t kAnswerBytesMax = size_t{1} << 20;
constexpr const char* kPrefix = "outcore/";  // after the zero that makes a name abstract

using Clock = std::chrono::steady_clock;
using Kind = Reply::Kind;

// Numbers where numbers belong, so that nobody who prints it need ask again.
bool is_answer(const Json& answer) {
  for (const char* key : {"pid", "page_bytes", "pages", "resident", "dirty", "mapped_bytes"})
    if (!answer[key].as<uint64_t>()) return false;
  for (const char* key : {"program", "file"})
    if (!answer[key].is_text()) return false;
  const auto columns = answer["columns"].as<std::vector<uint64_t>>();
  return columns && std::all_of(columns->begin(), columns->end(),
                                [](uint64_t percent) { return percent <= 100; });
}

// One question to one program. It never waits: poll() tells when there is something to hear.
class Call {
 public:
  Call(const RunningProgram& program, const std::string& question)
      : program_(program),
        socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    if (socket_ == -1 || !connect() || !is_trusted() || !ask(question)) end(errno);
  }
  ~Call() {
    if (socket_ != -1) ::close(socket_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool is_over() const { return is_over_; }
  int socket() const { return socket_; }
  void hear() {
    char text[4096];
    const ssize_t n = ::recv(socket_, text, sizeof text, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return end(n == 0 ? 0 : errno);
    text_.append(text, static_cast<size_t>(n));
    if (text_.size() > kAnswerBytesMax) end(EPROTO);
  }
  // Nothing more is waited for.
  Reply reply() const;

 private:
  bool connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = kPrefix + program_.name;
    if (name.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), length) != 0) return false;
    socklen_t size = sizeof peer_;
    return ::getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &peer_, &size) == 0;
  }
  // Anybody may listen on a name: what another user says is nothing to act on.
  bool is_trusted() {
    if (::geteuid() == 0 || peer_.uid == ::geteuid() || peer_.uid == 0) return true;
    errno = EACCES;
    return false;
  }
  bool ask(const std::string& question) {  // shorter than what a socket holds
    return ::send(socket_, question.data(), question.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(question.size());
  }
  void end(int why) {
    is_over_ = true;
    why_ = why;
  }
  Reply skipped(const std::string& why) const;

  RunningProgram program_;
  int socket_;
  ucred peer_{0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};  // as this namespace sees it
  std::string text_;
  bool is_over_ = false;
  int why_ = 0;  // an errno; 0: it has said what it had to say
};

Reply Call::skipped(const std::string& why) const {
  const std::string name = peer_.pid > 0 ? facts_of(peer_.pid).name : "";
  const std::string number = "pid " + std::to_string(program_.pid);
  return {program_,
          Kind::kSkipped,
          {},
          (name.empty() ? number : name + " (" + number + ")") + ": " + why};
}

Reply Call::reply() const {
  if (why_ == EACCES) return skipped("another user's; ask as root");
  if (!is_over_ || why_ == EAGAIN) return skipped("no answer in time, as it is stopped or busy");
  const bool is_closed = why_ == ECONNREFUSED || why_ == ECONNRESET || why_ == EPIPE;
  if (is_closed || (why_ == 0 && text_.empty())) {
    const bool is_others = why_ != ECONNREFUSED && ::geteuid() != 0 && peer_.uid != ::geteuid();
    return skipped(is_others ? "another user's; ask as root" : "it has ended");
  }
  if (why_ != 0 && why_ != EPROTO) return skipped(failure(why_, "ask it").message);
  if (text_ == "none\n") return {program_, Kind::kNone, {}, {}};
  static const std::string error = "error ";
  if (text_.starts_with(error))
    return {program_,
            Kind::kUndone,
            {},
            "process " + std::to_string(program_.pid) + ": " + text_.substr(error.size())};
  Json answer = Json::parse_or_null(text_);
  if (why_ == EPROTO || !is_answer(answer))
    return skipped(
        "its answer cannot be read; it may be of another version of Outcore: use the command of "
        "that");
  return {program_, Kind::kTaken, std::move(answer), {}};
}

// Until all are over, or the time is.
void hear_all(std::deque<Call>& calls, int wait_ms_max) {
  const auto until = Clock::now() + std::chrono::milliseconds(wait_ms_max);
  while (true) {
    std::vector<pollfd> sockets;
    std::vector<Call*> open;
    for (Call& call : calls) {
      if (call.is_over()) continue;
      sockets.push_back({call.socket(), POLLIN, 0});
      open.push_back(&call);
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (open.empty() || left < 0) return;
    if (::poll(sockets.data(), sockets.size(), static_cast<int>(left)) <= 0) continue;
    for (size_t i = 0; i < open.size(); ++i)
      if (sockets[i].revents != 0) open[i]->hear();
  }
}

}  // namespace

std::vector<RunningProgram> running_programs() {
  static const std::string mark = std::string(" @") + kPrefix;
  std::set<RunningProgram> found;  // connections have the name of the socket that took them
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const size_t at = line.rfind(mark);
    if (at == std::string::npos) continue;
    RunningProgram program{0, line.substr(at + mark.size())};
    const char* const end = program.name.data() + program.name.size();
    const auto read = std::from_chars(program.name.data(), end, program.pid);
    if (read.ec == std::errc() && read.ptr != end && *read.ptr == '.' && program.pid > 0)
      found.insert(program);
  }
  return {found.begin(), found.end()};
}

std::vector<Reply> ask(const std::vector<RunningProgram>& programs, const Question& question) {
  const std::string line = question.verb + " " + std::to_string(question.offset) + " " +
                           std::to_string(question.size_bytes) + " " +
                           std::to_string(question.columns) + " " + question.path + "\n";
  std::vector<Reply> replies;
  for (size_t asked = 0; asked < programs.size();) {
    std::deque<Call> calls;
    for (; asked < programs.size() && calls.size() < kAskedAtOnceMax; ++asked)
      calls.emplace_back(programs[asked], line);
    hear_all(calls, question.wait_ms_max);
    for (const Call& call : calls) replies.push_back(call.reply());
  }
  return replies;
}

}  // namespace outcore::cli
