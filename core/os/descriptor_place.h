// DescriptorPlace: which numbers the library's own descriptors have. Any thread.
#pragma once

namespace outcore::os {

// A descriptor that was just opened, by the number that it is to have: never 0, 1 or 2. Where a
// program was started with one of these closed, the next open() gets it, and what the program
// prints would be written into a store. Takes what the call gave, also -1. -1 with errno: the
// process has no other number left, and the descriptor is closed.
int above_standard(int fd);

// A door that must not be in the way of the program's other descriptors moves those that the
// library opens by other means than the C library's calls. Set before any is opened. Takes a
// descriptor, and returns the one that it is from now on. nullptr: they stay.
extern int (*place_descriptor)(int fd);

}  // namespace outcore::os
