// AsProgram: the functions that this library exports, for its own use. Called by their plain names,
// the linker's --wrap would lead past them (inside.h).
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
#define OUTCORE_AS_PROGRAM(name)               \
  extern "C" decltype(::name) __real_##name;   \
  namespace outcore::preload::as_program {     \
  inline constexpr auto& name = __real_##name; \
  }
OUTCORE_AS_PROGRAM(_exit)
OUTCORE_AS_PROGRAM(close)
OUTCORE_AS_PROGRAM(fallocate)
OUTCORE_AS_PROGRAM(fcntl)
OUTCORE_AS_PROGRAM(fdatasync)
OUTCORE_AS_PROGRAM(fsync)
OUTCORE_AS_PROGRAM(ftruncate)
OUTCORE_AS_PROGRAM(ioctl)
OUTCORE_AS_PROGRAM(lseek)
OUTCORE_AS_PROGRAM(madvise)
OUTCORE_AS_PROGRAM(mincore)
OUTCORE_AS_PROGRAM(mmap)
OUTCORE_AS_PROGRAM(mprotect)
OUTCORE_AS_PROGRAM(mremap)
OUTCORE_AS_PROGRAM(msync)
OUTCORE_AS_PROGRAM(munlock)
OUTCORE_AS_PROGRAM(munmap)
OUTCORE_AS_PROGRAM(open)
OUTCORE_AS_PROGRAM(openat)
OUTCORE_AS_PROGRAM(pread)
OUTCORE_AS_PROGRAM(pwrite)
OUTCORE_AS_PROGRAM(read)
OUTCORE_AS_PROGRAM(sigaction)
OUTCORE_AS_PROGRAM(write)
OUTCORE_AS_PROGRAM(writev)
#undef OUTCORE_AS_PROGRAM
// NOLINTEND(bugprone-reserved-identifier)
