#include "far/commands/host_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "cli/text.h"

namespace outcore::cli {
namespace {

using Found = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

constexpr const char* kSomePort = "9";  // nothing is sent there

Found look_up(const std::string& name, int* why) {
  addrinfo hints{}, *all = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  *why = ::getaddrinfo(name.c_str(), kSomePort, &hints, &all);
  return {*why == 0 ? all : nullptr, [](addrinfo* list) {
            if (list != nullptr) ::freeaddrinfo(list);
          }};
}

// "localhost" is 127.0.0.1 if possible, because servers listen at one address.
const addrinfo* choose(const std::string& name, const addrinfo* all) {
  if (::strcasecmp(name.c_str(), "localhost") == 0)
    for (const addrinfo* at = all; at != nullptr; at = at->ai_next)
      if (at->ai_family == AF_INET) return at;
  return all;
}

std::string text_of(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = "";
  ::getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

// 0.0.0.0 and "::" stand for every address, and so for no single one.
bool is_nobody(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == INADDR_ANY;
  if (address->sa_family == AF_INET6)
    return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr) != 0;
  return true;
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24 == 127;
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr) != 0;
}

int open_socket(int family) { return ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0); }

bool can_bind(const addrinfo& at) {
  const int fd = open_socket(at.ai_family);
  sockaddr_storage any_port{};
  std::memcpy(&any_port, at.ai_addr, at.ai_addrlen);
  (at.ai_family == AF_INET ? reinterpret_cast<sockaddr_in*>(&any_port)->sin_port
                           : reinterpret_cast<sockaddr_in6*>(&any_port)->sin6_port) = 0;
  const bool can = ::bind(fd, reinterpret_cast<sockaddr*>(&any_port), at.ai_addrlen) == 0;
  ::close(fd);
  return can;
}

std::string short_name(const std::string& name) { return name.substr(0, name.find('.')); }

// By its full name; or by the part before the first dot, if one of the two names has no more than
// that.
bool is_own_name(const std::string& name) {
  const std::string own = own_name();
  const bool is_whole = name.find('.') != std::string::npos && own.find('.') != std::string::npos;
  return is_whole ? ::strcasecmp(name.c_str(), own.c_str()) == 0
                  : ::strcasecmp(short_name(name).c_str(), short_name(own).c_str()) == 0;
}

}  // namespace

std::string own_name() {
  char name[NI_MAXHOST] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

bool is_this_machine(const std::string& name) {
  if (is_own_name(name)) return true;
  const Result<HostAddress> address = find_address(name);
  return address.ok() && address.value().is_here;
}

Result<HostAddress> find_address(const std::string& name) {
  int why = 0;
  const Found all = look_up(name, &why);
  const addrinfo* const at = choose(name, all.get());
  if (at == nullptr && is_own_name(name)) return HostAddress{"127.0.0.1", true, true};
  if (at == nullptr)
    return Error{EHOSTUNREACH, std::string(why == 0 ? "it has no address" : ::gai_strerror(why)) +
                                   ": write its address, or add its name to /etc/hosts"};
  if (is_nobody(at->ai_addr))
    return Error{EHOSTUNREACH, "that is the address of nobody: write one of the host's own"};
  return HostAddress{text_of(at->ai_addr, at->ai_addrlen), can_bind(*at), is_loopback(at->ai_addr)};
}

Result<std::string> own_address_toward(const std::string& other) {
  int why = 0;
  const Found all = look_up(other, &why);
  const int fd = all == nullptr ? -1 : open_socket(all->ai_family);
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  const bool is_known = fd != -1 && ::connect(fd, all->ai_addr, all->ai_addrlen) == 0 &&
                        ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  const int error = errno;
  if (fd != -1) ::close(fd);
  if (!is_known) return failure(error, "find a way to " + other, "look at its network");
  return text_of(reinterpret_cast<sockaddr*>(&own), size);
}

}  // namespace outcore::cli
