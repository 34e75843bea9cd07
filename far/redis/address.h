// Address: where a server listens. A value. parse_numeric() may be called on the fault path.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "outcore/result.h"

namespace outcore::redis {

struct Address {
  sockaddr_storage socket{};
  socklen_t socket_bytes = 0;  // 0: none
  char text[128] = {};         // "127.0.0.1:7000", "[::1]:7000": for messages

  bool is_same(const Address& other) const;
  // Parses an IPv4 or IPv6 address. False: `host` is not one.
  bool parse_numeric(std::string_view host, uint16_t port);
};

// Parses host:port[,host:port…], with IPv6 addresses in brackets; the default port is 6379. Of a
// name the first address counts. Looks names up, so not on the fault path. Errors: EINVAL (a port),
// EHOSTUNREACH (an unknown name).
Result<std::vector<Address>> resolve_all(const std::string& hosts);
// The same without looking names up. Errors: EINVAL.
Status check_hosts(const std::string& hosts);

}  // namespace outcore::redis
