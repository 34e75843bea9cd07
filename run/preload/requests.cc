#include "run/preload/requests.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <sstream>
#include <string>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/os/at_fork.h"
#include "run/preload/door.h"
#include "run/preload/words.h"

namespace outcore::preload {
namespace {

constexpr int kSecondsMax = 2;

std::atomic<int> listening{-1};

// Binds a name with a random part, so that nobody can have taken it before, even where several PID
// namespaces share a network namespace. 0 or -errno.
int bind_by_chance(int fd) {
  constexpr int kAttemptsMax = 8;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    uint64_t chance = 0;
    if (::getrandom(&chance, sizeof chance, GRND_NONBLOCK) != sizeof chance)
      chance = base::now_ns() + static_cast<uint64_t>(attempt);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const int n =
        std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "outcore/%d.%016llx",
                      ::getpid(), static_cast<unsigned long long>(chance));
    const auto size =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(n));
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0) return 0;
    if (errno != EADDRINUSE) break;
  }
  return -errno;
}

uint64_t deadline_in(int seconds) { return base::now_ns() + seconds * 1'000'000'000ull; }

// The deadline is for a whole line, not for each byte: a slow peer delays nobody longer.
bool waits_until(int fd, int16_t events, uint64_t deadline_ns) {
  for (;;) {
    const uint64_t now = base::now_ns();
    if (now >= deadline_ns) return false;
    pollfd wanted{fd, events, 0};
    const int n = ::poll(&wanted, 1, static_cast<int>((deadline_ns - now) / 1'000'000) + 1);
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

// The peer sends only one line, so nothing is lost behind it.
std::string read_line(int fd, uint64_t deadline_ns) {
  std::string line;
  char part[512];
  while (line.size() < 8192 && waits_until(fd, POLLIN, deadline_ns)) {
    const ssize_t n = ::recv(fd, part, sizeof part, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) break;
    line.append(part, static_cast<size_t>(n));
    if (const size_t end = line.find('\n'); end != std::string::npos) {
      line.resize(end);
      break;
    }
  }
  return line;
}

void write_all(int fd, const std::string& text, uint64_t deadline_ns) {
  for (size_t at = 0; at < text.size() && waits_until(fd, POLLOUT, deadline_ns);) {
    const ssize_t n = ::send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return;
    at += static_cast<size_t>(n);
  }
}

bool is_trusted(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

std::string residency(Door& door, TakenFile& file, uint64_t offset, uint64_t size_bytes,
                      uint64_t columns) {
  base::Json answer;
  door.with_cache(file, [&](paging::PageCache& cache, uint64_t mapped_bytes) {
    const uint64_t page_bytes = cache.page_bytes, bytes = cache.store_bytes.load();
    const uint64_t end_bytes =
        size_bytes == 0 ? bytes : std::min(bytes, offset + std::min(size_bytes, bytes));
    const uint64_t first = std::min(offset, end_bytes) / page_bytes;
    const uint64_t end = std::min((end_bytes + page_bytes - 1) / page_bytes, cache.page_count());
    columns = std::clamp<uint64_t>(columns, 1, 1024);
    std::vector<uint64_t> there(columns), all(columns);
    uint64_t resident = 0, dirty = 0;
    for (uint64_t page = first; page < end; ++page) {
      const region::PageValue value = cache.words[page].load();
      const bool is_resident = cache.shared != nullptr
                                   ? !cache.seems_absent(page)
                                   : value.state() == region::PageState::kResident ||
                                         value.state() == region::PageState::kBusy;
      const uint64_t column = (page - first) * columns / std::max<uint64_t>(end - first, 1);
      ++all[column];
      if (!is_resident) continue;
      ++there[column], ++resident;
      if (value.has(region::PageValue::kDirty)) ++dirty;
    }
    std::vector<unsigned> percent;
    for (uint64_t i = 0; i < columns; ++i)
      percent.push_back(all[i] == 0 ? 0 : static_cast<unsigned>(100 * there[i] / all[i]));
    answer = {
        {"pid", ::getpid()},        {"program", program_name()}, {"file", file.path},
        {"page_bytes", page_bytes}, {"pages", end - first},      {"resident", resident},
        {"dirty", dirty},           {"columns", percent},        {"mapped_bytes", mapped_bytes}};
  });
  if (answer.is_null()) return "none\n";
  return answer.dump() + "\n";
}

std::string answer_to(const std::string& line) {
  std::istringstream words(line);
  std::string verb, path;
  words >> verb;
  Door& door = Door::instance();
  uint64_t offset = 0, size_bytes = 0, columns = 0;
  words >> offset >> size_bytes >> columns;
  if (!words || (verb != "residency" && verb != "warm" && verb != "evict"))
    return "error a request that is not known\n";
  std::getline(words >> std::ws, path);
  TakenFile* file = door.file_of_path(AT_FDCWD, path.c_str());
  if (file == nullptr) return "none\n";
  if (verb != "residency") {
    const Status s = door.bring(*file, offset, size_bytes, verb == "warm");
    if (!s.ok()) return "error " + s.message() + "\n";
    columns = 1;
  }
  return residency(door, *file, offset, size_bytes, columns);
}

}  // namespace

int listen_for_requests() {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  int error = bind_by_chance(fd);
  if (error == 0 && ::listen(fd, 16) != 0) error = -errno;
  if (error == 0) {
    listening.store(fd);
    return fd;
  }
  ::close(fd);
  return error;
}

void stop_listening_for_requests() {
  if (const int fd = listening.exchange(-1); fd >= 0) ::close(fd);
}

void keep_requests_from_children() {
  os::at_fork(os::ForkOrder::kRequests, nullptr, nullptr, stop_listening_for_requests);
}

void answer_request(int listener) {
  const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  if (is_trusted(fd)) {
    const std::string question = read_line(fd, deadline_in(kSecondsMax));
    write_all(fd, answer_to(question), deadline_in(kSecondsMax));
  }
  ::close(fd);
}

}  // namespace outcore::preload
