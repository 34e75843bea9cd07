// LateCalls: functions of the C library that need shared libraries at run time. They are looked up
// when they are used, because the linker would warn about each of them in a statically linked
// program, even if it is never called. Any thread; not on the fault path.
#pragma once

struct addrinfo;

namespace outcore::os {

// As dlopen(). nullptr: there is no such library, or the program is statically linked.
void* open_library(const char* name, int flags);

// The function getaddrinfo(); nullptr if it is not available.
using LookUp = int (*)(const char* host, const char* service, const addrinfo* wanted,
                       addrinfo** found);
LookUp look_up_hosts();

}  // namespace outcore::os
