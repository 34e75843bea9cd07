// MoreOpens: calls that open descriptors and have no function in the C library of Debian 12. They
// are made as system calls and return -1 with errno. See calls_descriptor.cc.
#pragma once

#include <linux/openat2.h>

#include <cstddef>

namespace outcore::preload {

int open_at_how(int folder, const char* path, open_how* how, size_t size_bytes);
int get_descriptor(int pidfd, int number, unsigned flags);

}  // namespace outcore::preload
