// HostAddress: which numeric address a host has for this machine, and which hosts are this machine.
// May ask name servers, and wait for them as long as the system's resolver does.
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
// By its name, by "localhost", or by an address that can be bound here.
bool is_this_machine(const std::string& name);
// Errors: EHOSTUNREACH, the name is not known or names nobody.
Result<HostAddress> find_address(const std::string& name);
// The address of this machine that packets to `other`, a numeric address, come from. Errors: those
// of connect.
Result<std::string> own_address_toward(const std::string& other);

}  // namespace outcore::cli
