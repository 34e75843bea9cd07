// Disk: identifies the disk on which a file lies.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace outcore::os {

// A number for the disk of a device, the same for all partitions of a disk. A device that the
// kernel does not know as a block device (btrfs, tmpfs, network) gets a number of its own. Never 0.
uint64_t disk_of(dev_t device);

}  // namespace outcore::os
