// Fault ranges: the userfaultfd calls that fill, show, protect and wake a range, each repeated
// until the whole range is done. Any thread; the fault path.
#pragma once

#include <cstddef>
#include <cstdint>

#include "outcore/result.h"

namespace outcore::os {

// FaultSource: a userfaultfd and what the kernel offers with it. Frames register their ranges with
// it. Constant after start.
struct FaultSource {
  int fd = -1;
  // Message delivery: threads wait in the kernel and must be woken. False: SIGBUS mode, where no
  // thread waits in the kernel.
  bool is_messages = false;
  bool has_batched_advice = false;  // the kernel has it
  bool has_poison = false;          // the kernel has it, and it was requested
  int nothing = -1;  // an empty file to map over poisoned pages, if has_poison is false
  int pagemap = -1;  // /proc/self/pagemap
};

// All functions: 0 or -errno. EAGAIN (the address space is changing) is retried; EEXIST counts as
// success, and wakes the range; `there_pages` becomes the number of such pages.
int copy_in(const FaultSource& source, std::byte* to, const std::byte* from, uint64_t size_bytes,
            bool is_protected, uint64_t* there_pages = nullptr);
// Fills with zeros by copying, because UFFDIO_ZEROPAGE cannot write-protect.
int copy_zeros_in(const FaultSource& source, std::byte* to, uint64_t size_bytes, bool is_protected);
int zero_in(const FaultSource& source, std::byte* to, uint64_t size_bytes);
int continue_in(const FaultSource& source, std::byte* to, uint64_t size_bytes, bool is_protected);
// The same where most of it may be mapped already: the kernel stops at each page that is, so it is
// asked first which are. A page that leaves meanwhile may be left out: its touch is a fault again,
// and is answered for that page alone (TouchRuns), of which nothing is left out.
int continue_missing(const FaultSource& source, std::byte* to, uint64_t size_bytes,
                     bool is_protected);
int write_protect(const FaultSource& source, std::byte* at, uint64_t size_bytes, bool is_protected);
void wake_range(const FaultSource& source, std::byte* at, uint64_t size_bytes);
// Makes each touch of the absent system page raise SIGBUS (in a system call: EFAULT), until the
// range is forgotten. Without UFFDIO_POISON (before Linux 6.6) it maps a page past the end of a
// file there; the range must then be attached again. REQUIRES: the page stays absent and mapped
// meanwhile.
int poison(const FaultSource& source, std::byte* at);
int register_range(const FaultSource& source, std::byte* at, uint64_t size_bytes, uint64_t mode);

}  // namespace outcore::os
