// Fault ranges: the userfaultfd calls that fill, show, protect and wake ranges, each carried to its
// end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "outcore/result.h"

namespace outcore::os {

// FaultSource: a userfaultfd and what it was opened for. Frames register their ranges with it.
// Constant after start.
struct FaultSource {
  int fd = -1;
  bool is_messages =
      false;  // waiters must be woken; otherwise SIGBUS mode, where nobody waits in the kernel
  bool has_batched_advice = false;  // of the kernel
  bool has_poison = false;          // of the kernel, and asked for
  int nothing = -1;                 // without poison: an empty file to map in its place
  int pagemap = -1;                 // /proc/self/pagemap
};

// All: 0 or -errno. EAGAIN (the address space is changing) is tried again; EEXIST is success with a
// wake.
int copy_in(const FaultSource& source, std::byte* to, const std::byte* from, uint64_t size_bytes,
            bool is_protected);
// Zeros as a copy: UFFDIO_ZEROPAGE cannot protect.
int copy_zeros_in(const FaultSource& source, std::byte* to, uint64_t size_bytes, bool is_protected);
int zero_in(const FaultSource& source, std::byte* to, uint64_t size_bytes);
int continue_in(const FaultSource& source, std::byte* to, uint64_t size_bytes, bool is_protected);
int write_protect(const FaultSource& source, std::byte* at, uint64_t size_bytes, bool is_protected);
void wake_range(const FaultSource& source, std::byte* at, uint64_t size_bytes);
// A touch of the absent system page raises SIGBUS, in a system call EFAULT, until the range is
// forgotten. Without UFFDIO_POISON (before Linux 6.6) a page past the end of a file is mapped over
// it: then the range must be attached anew. REQUIRES: the page stays absent, and mapped, meanwhile.
int poison(const FaultSource& source, std::byte* at);
int register_range(const FaultSource& source, std::byte* at, uint64_t size_bytes, uint64_t mode);

}  // namespace outcore::os
