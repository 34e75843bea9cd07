#include "far/redis/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "core/os/late_calls.h"

namespace outcore::redis {
namespace {

constexpr uint16_t kDefaultPort = 6379;

void set_text(Address& address, std::string_view host, uint16_t port) {
  const bool is_v6 = host.find(':') != std::string_view::npos;
  std::snprintf(address.text, sizeof address.text, is_v6 ? "[%.*s]:%u" : "%.*s:%u",
                static_cast<int>(std::min<size_t>(host.size(), 100)), host.data(), port);
}

// Splits "host:port", "[v6]:port" or "host". False: the port is not valid.
bool split(std::string_view text, std::string_view* host, uint16_t* port) {
  std::string_view digits;
  *port = kDefaultPort;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return false;
    *host = text.substr(1, close - 1);
    text.remove_prefix(close + 1);
    if (text.empty()) return !host->empty();
    if (text.front() != ':') return false;
    digits = text.substr(1);
  } else {
    const size_t colon = text.rfind(':');
    *host = text.substr(0, colon);
    if (colon == std::string_view::npos) return !host->empty();
    digits = text.substr(colon + 1);
  }
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *port);
  return error == std::errc() && end == digits.data() + digits.size() && *port != 0 &&
         !host->empty();
}

// Whether a server answers at the address. A name may have several addresses ("localhost": ::1 and
// 127.0.0.1), and a server need not listen at all of them.
bool answers(const addrinfo& at) {
  constexpr int kWaitMs = 1000;
  const int fd = ::socket(at.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  int error = ::connect(fd, at.ai_addr, at.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd about{fd, POLLOUT, 0};
    socklen_t bytes = sizeof error;
    if (::poll(&about, 1, kWaitMs) != 1 ||
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0)
      error = ETIMEDOUT;
  }
  ::close(fd);
  return error == 0;
}

Error refuse(std::string_view text) {
  return {EINVAL, "'" + std::string(text) + "' is not a server: write host:port"};
}

Result<Address> resolve(std::string_view text) {
  std::string_view host;
  uint16_t port = 0;
  if (!split(text, &host, &port)) return refuse(text);
  Address address;
  if (address.parse_numeric(host, port)) return address;
  const std::string name(host), service = std::to_string(port);
  const os::LookUp look_up = os::look_up_hosts();
  if (look_up == nullptr)
    return Error{EHOSTUNREACH, "host '" + name +
                                   "': a program that is linked statically cannot "
                                   "look up names: write its address"};
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = look_up(name.c_str(), service.c_str(), &wanted, &found); error != 0)
    return Error{EHOSTUNREACH, "look up host '" + name + "': " + ::gai_strerror(error) +
                                   "; see that its name is right, or write its address"};
  const addrinfo* best = found;
  if (found->ai_next != nullptr)
    while (best != nullptr && !answers(*best)) best = best->ai_next;
  if (best == nullptr) best = found;
  std::memcpy(&address.socket, best->ai_addr, best->ai_addrlen);
  address.socket_bytes = best->ai_addrlen;
  ::freeaddrinfo(found);
  set_text(address, host, port);
  return address;
}

std::vector<std::string_view> hosts_of(std::string_view hosts) {
  std::vector<std::string_view> all;
  for (size_t at = 0; at <= hosts.size();) {
    const size_t comma = std::min(hosts.find(',', at), hosts.size());
    all.push_back(hosts.substr(at, comma - at));
    at = comma + 1;
  }
  return all;
}

}  // namespace

bool Address::is_same(const Address& other) const {
  return socket_bytes == other.socket_bytes &&
         std::memcmp(&socket, &other.socket, socket_bytes) == 0;
}

bool Address::parse_numeric(std::string_view host, uint16_t port) {
  char name[INET6_ADDRSTRLEN + 1] = {};
  if (host.size() >= sizeof name) return false;
  std::memcpy(name, host.data(), host.size());
  socket = {};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&socket);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&socket);
  if (::inet_pton(AF_INET, name, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    socket_bytes = sizeof *v4;
  } else if (::inet_pton(AF_INET6, name, &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    socket_bytes = sizeof *v6;
  } else {
    return false;
  }
  set_text(*this, host, port);
  return true;
}

Result<std::vector<Address>> resolve_all(const std::string& hosts) {
  std::vector<Address> addresses;
  for (const std::string_view host : hosts_of(hosts)) {
    auto address = resolve(host);
    if (!address) return address.error();
    addresses.push_back(address.value());
  }
  return addresses;
}

Status check_hosts(const std::string& hosts) {
  for (const std::string_view text : hosts_of(hosts)) {
    std::string_view host;
    uint16_t port = 0;
    if (!split(text, &host, &port)) return refuse(text);
  }
  return {};
}

}  // namespace outcore::redis
