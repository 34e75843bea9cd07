// DescriptorPlace: where descriptors go that the library opens by other means than the C library's
// calls. A door that must not be in the way of the program's descriptors moves them. Set before any
// is opened.
#pragma once

namespace outcore::os {

// Takes a descriptor, and returns the one that it is from now on. nullptr: they stay.
extern int (*place_descriptor)(int fd);

}  // namespace outcore::os
