// Disk: on which device a file rests.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace outcore::os {

// A number for the disk of a device: partitions of one disk have the same. Of what the kernel does
// not know as a block device (btrfs, tmpfs, the network), a number of its own. Never 0.
uint64_t disk_of(dev_t device);

}  // namespace outcore::os
