#include "preload/requests.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "preload/door.h"
#include "preload/words.h"

namespace outcore::preload {
namespace {

constexpr int kSecondsMax = 2, kReleaseSecondsMax = 30;

socklen_t address_of(int pid, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  const int n =
      std::snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "outcore/%d", pid);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(n));
}

void bound_waits(int fd, int seconds) {
  const timeval bound{seconds, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
}

std::string read_line(int fd) {
  std::string line;
  for (char c = 0; line.size() < 8192 && ::read(fd, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

void write_all(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
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
  nlohmann::json answer;
  door.with_space(file, [&](paging::Space& space, uint64_t mapped_bytes) {
    const uint64_t page_bytes = space.page_bytes, bytes = space.store_bytes.load();
    const uint64_t end_bytes =
        size_bytes == 0 ? bytes : std::min(bytes, offset + std::min(size_bytes, bytes));
    const uint64_t first = std::min(offset, end_bytes) / page_bytes;
    const uint64_t end = std::min((end_bytes + page_bytes - 1) / page_bytes, space.page_count());
    columns = std::clamp<uint64_t>(columns, 1, 1024);
    std::vector<uint64_t> there(columns), all(columns);
    uint64_t resident = 0, dirty = 0;
    for (uint64_t page = first; page < end; ++page) {
      const region::PageValue value = space.words[page].load();
      const bool is_resident = value.state() == region::PageState::kResident ||
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
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string answer_to(const std::string& line) {
  std::istringstream words(line);
  std::string verb, path;
  words >> verb;
  Door& door = Door::instance();
  if (verb == "release") {
    Identity identity;
    words >> identity.device >> identity.inode;
    return door.hand_back(identity, "a forked child uses it, too") ? "done\n" : "error\n";
  }
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
  sockaddr_un address;
  const socklen_t size = address_of(::getpid(), &address);
  if (fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      ::listen(fd, 16) == 0)
    return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

void answer_request(int listener) {
  const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  bound_waits(fd, kSecondsMax);
  if (is_trusted(fd)) write_all(fd, answer_to(read_line(fd)));
  ::close(fd);
}

bool ask_to_release(int pid, const Identity& file) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address;
  const socklen_t size = address_of(pid, &address);
  bool is_done = false;
  if (fd >= 0 && ::connect(fd, reinterpret_cast<sockaddr*>(&address), size) == 0) {
    bound_waits(fd, kReleaseSecondsMax);
    write_all(fd,
              "release " + std::to_string(file.device) + " " + std::to_string(file.inode) + "\n");
    is_done = read_line(fd) == "done";
  }
  if (fd >= 0) ::close(fd);
  return is_done;
}

}  // namespace outcore::preload
