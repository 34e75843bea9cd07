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
int register_range(const FaultSource& source, std::byte* at, uint64_t size_bytes, uint64_t mode);

}  // namespace outcore::os
