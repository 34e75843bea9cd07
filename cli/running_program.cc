#include "cli/running_program.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <set>

#include "bench/text.h"

namespace outcore::cli {
namespace {

constexpr int kConnectSecondsMax = 2;
constexpr size_t kAnswerBytesMax = size_t{1} << 20;
constexpr const char* kPrefix = "outcore/";  // after the zero that makes a name abstract

using Clock = std::chrono::steady_clock;

class Socket {
 public:
  Socket() : number_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{kConnectSecondsMax, 0};
    ::setsockopt(number_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  ~Socket() {
    if (number_ != -1) ::close(number_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool connect_to(pid_t program) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = kPrefix + std::to_string(program);
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return ::connect(number_, reinterpret_cast<const sockaddr*>(&address), length) == 0;
  }

  bool send_all(const std::string& text) const {
    for (size_t done = 0; done < text.size();) {
      const ssize_t n = ::send(number_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }

  // To its end. False, with errno: the time is over, or more came than any answer has.
  bool receive_all(int wait_ms_max, std::string* into) const {
    const auto until = Clock::now() + std::chrono::milliseconds(wait_ms_max);
    while (true) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      pollfd file{number_, POLLIN, 0};
      const int ready = ::poll(&file, 1, static_cast<int>(std::max<long>(left, 0)));
      if (ready == -1 && errno == EINTR) continue;
      if (ready == 0) errno = ETIMEDOUT;
      if (ready <= 0) return false;
      char text[4096];
      const ssize_t n = ::recv(number_, text, sizeof text, 0);
      if (n == 0) return true;
      if (n < 0) return false;
      into->append(text, static_cast<size_t>(n));
      if (into->size() > kAnswerBytesMax) {
        errno = EPROTO;
        return false;
      }
    }
  }

 private:
  int number_;
};

// Numbers where numbers belong, so that nobody who prints it need ask again.
bool is_answer(const nlohmann::json& answer) {
  if (!answer.is_object()) return false;
  for (const char* key : {"pid", "page_bytes", "pages", "resident", "dirty", "mapped_bytes"})
    if (!answer.contains(key) || !answer[key].is_number_unsigned()) return false;
  for (const char* key : {"program", "file"})
    if (!answer.contains(key) || !answer[key].is_string()) return false;
  if (!answer.contains("columns") || !answer["columns"].is_array()) return false;
  return std::all_of(answer["columns"].begin(), answer["columns"].end(), [](const auto& percent) {
    return percent.is_number_unsigned() && percent.template get<uint64_t>() <= 100;
  });
}

}  // namespace

std::vector<pid_t> running_programs() {
  static const std::string mark = std::string(" @") + kPrefix;
  std::set<pid_t> found;  // connections have the name of the socket that took them
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const size_t at = line.rfind(mark);
    if (at == std::string::npos) continue;
    const char* const end = line.data() + line.size();
    pid_t program = 0;
    const auto read = std::from_chars(line.data() + at + mark.size(), end, program);
    if (read.ec == std::errc() && read.ptr == end && program > 0) found.insert(program);
  }
  return {found.begin(), found.end()};
}

Result<std::optional<nlohmann::json>> ask(pid_t program, const Question& question) {
  using Answer = std::optional<nlohmann::json>;
  const std::string attempted = "ask process " + std::to_string(program);
  static const std::string remedy = "see that it runs (a stopped one cannot answer)";
  const auto failed = [&](int why) {
    return bench::failure(why == EAGAIN ? ETIMEDOUT : why, attempted, remedy);
  };
  const Socket socket;
  if (!socket.connect_to(program)) {
    if (errno == ECONNREFUSED) return Answer();  // it has just ended
    return failed(errno);
  }
  const std::string line = question.verb + " " + std::to_string(question.offset) + " " +
                           std::to_string(question.size_bytes) + " " +
                           std::to_string(question.columns) + " " + question.path + "\n";
  if (!socket.send_all(line)) return errno == EPIPE ? Result<Answer>(Answer()) : failed(errno);
  std::string text;
  if (!socket.receive_all(question.wait_ms_max, &text))
    return errno == ECONNRESET ? Result<Answer>(Answer()) : failed(errno);
  if (text.empty() || text == "none\n") return Answer();
  static const std::string error = "error ";
  if (text.starts_with(error))
    return Error{EIO, "process " + std::to_string(program) + ": " + text.substr(error.size())};
  nlohmann::json answer = nlohmann::json::parse(text, nullptr, false);
  if (!is_answer(answer))
    return Error{EPROTO, attempted +
                             ": its answer cannot be read; it may be of another version of "
                             "Outcore: use the command of that"};
  return Answer(std::move(answer));
}

}  // namespace outcore::cli
