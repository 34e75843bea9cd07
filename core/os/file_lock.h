// Locks of files between processes, held by an open descriptor and not by the process: locks of
// ranges of bytes (OFD) and of whole files (flock). They end with the descriptor.
//
// A child that inherits such a descriptor would keep the lock after its parent's end: those that
// open_to_lock() opens are closed by fork() in the child (ParentsDescriptors). Any thread.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace outcore::os {

// As openat(), with O_CLOEXEC and above the standard descriptors. -errno.
int open_to_lock(int folder, const char* path, int flags, mode_t mode = 0);
// Closes a descriptor of open_to_lock(). In a forked child nothing happens: it is closed already.
void close_locked(int fd);

// Locks the whole file without waiting. 0; -EAGAIN: it is locked elsewhere; -errno.
int lock_file(int fd, bool is_exclusive);

// F_WRLCK, F_RDLCK, or F_UNLCK to unlock. A `count` of 0: to the end of all files. A lock that the
// descriptor has of these bytes becomes the new one. 0; -EAGAIN: another has them; -errno.
int lock_bytes(int fd, int type, uint64_t first, uint64_t count, bool may_wait = false);
// A lock of others that keeps this descriptor from locking the bytes; l_type F_UNLCK: there is
// none. Of several it need not be the first. 0 or -errno.
int find_lock(int fd, uint64_t first, uint64_t count, struct flock* found);

// Of locks of single bytes, by others: which bytes in the range are locked, in order. Not the fault
// path. 0 or -errno.
int find_locks(int fd, uint64_t first, uint64_t count, std::vector<uint64_t>* bytes);

// "device:inode" of the file, as Store::identity(); "": it is not known.
std::string identity_of(int fd);

}  // namespace outcore::os
