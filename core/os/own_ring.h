// OwnRing: creates the library's own io_uring rings, distinguishable from the program's. Any
// thread.
//
// `outcore run` may forbid rings to a program with a system call filter, which children inherit
// over exec. The filter lets calls pass that carry this mark in an argument that the call does not
// use.
#pragma once

#include <linux/io_uring.h>

namespace outcore::os {

inline constexpr long kOwnRingMark = 0x4f7574636f7265;  // the sixth argument

// Creates a ring. A descriptor, or -errno.
int set_up_own_ring(unsigned entries, io_uring_params* parameters);

}  // namespace outcore::os
