// Address: where a server listens. A value. parse_numeric() is fit for the fault path.
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
  // An IPv4 or IPv6 address. False if the host is none.
  bool parse_numeric(std::string_view host, uint16_t port);
};

// host:port[,host:port…], IPv6 in brackets; a host without port has 6379. A name stands for the
// first of its addresses. Not on the fault path: names are looked up.
// Errors: EINVAL (a port), EHOSTUNREACH (a name that nobody knows).
Result<std::vector<Address>> resolve_all(const std::string& hosts);

}  // namespace outcore::redis
