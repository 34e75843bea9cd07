// LateCalls: calls of the C library that need shared libraries at run time. They are looked up when
// they are used: a program that is linked statically would be warned of each by its linker, used or
// not. Any thread but the fault path.
#pragma once

struct addrinfo;

namespace outcore::os {

// As dlopen(). nullptr: there is no such library, or the program is linked statically.
void* open_library(const char* name, int flags);

// As getaddrinfo(); nullptr where it cannot be had.
using LookUp = int (*)(const char* host, const char* service, const addrinfo* wanted,
                       addrinfo** found);
LookUp look_up_hosts();

}  // namespace outcore::os
