// OwnRing: io_uring's rings of ours, told from the program's. Any thread.
//
// A door may forbid rings to a program by a filter of system calls, which children inherit over
// exec. The filter lets pass what carries a mark in an argument that the call has no use for.
#pragma once

#include <linux/io_uring.h>

namespace outcore::os {

inline constexpr long kOwnRingMark = 0x4f7574636f7265;  // the sixth argument

// The set-up call: a descriptor or -errno.
int set_up_own_ring(unsigned entries, io_uring_params* parameters);

}  // namespace outcore::os
