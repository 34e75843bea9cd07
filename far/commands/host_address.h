// HostAddress: which numeric address a host has as seen from this machine, and which hosts are this
// machine. It may ask name servers, and wait for them as long as the system's resolver does.
#pragma once

#include <string>

#include "outcore/result.h"

namespace outcore::cli {

struct HostAddress {
  std::string text;  // "192.0.2.7", "fd00::7"
  bool is_here = false;
  bool is_loopback = false;
};

std::string own_name();
// Whether `name` is this machine's name, "localhost", or an address that can be bound here.
bool is_this_machine(const std::string& name);
// Errors: EHOSTUNREACH (the name is unknown, or has no address).
Result<HostAddress> find_address(const std::string& name);
// The address of this machine from which packets to `other`, a numeric address, are sent. Errors:
// those of connect.
Result<std::string> own_address_toward(const std::string& other);

}  // namespace outcore::cli
