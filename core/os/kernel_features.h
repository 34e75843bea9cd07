// Kernel features: what this kernel lets this process do, found out by doing it once.
// Any thread; not on the fault path.
#pragma once

#include <string>

#include "outcore/result.h"

namespace outcore::os {

struct KernelFeatures {
  bool has_sigbus = false;    // userfaultfd in SIGBUS mode (user mode suffices): in-thread delivery
  bool has_messages = false;  // userfaultfd messages, for faults inside system calls as well
  bool has_anonymous_wp =
      false;  // private frames can be written: a write to a clean page is a fault
  bool has_write_tracking =
      false;  // shared frames: missing and minor faults, WP_ASYNC and PAGEMAP_SCAN (6.7)
  bool has_minor_shmem = false;     // UFFDIO_CONTINUE on a memfd
  bool has_continue_wp = false;     // … which shows the page write-protected (6.4)
  bool has_poison = false;          // UFFDIO_POISON (6.6)
  bool has_move = false;            // UFFDIO_MOVE (6.8)
  bool has_batched_advice = false;  // process_madvise(DONTNEED and REMOVE) on oneself (6.13)
  bool has_pagemap = false;         // /proc/self/pagemap tells write protection (bit 57, 5.14)
  bool has_io_uring = false;
  bool is_masked = false;          // newer features were left out on request
  std::string release;             // "6.8.0-45-generic"
  std::string why_no_userfaultfd;  // empty if has_sigbus; else one line with the remedy
  std::string why_no_messages;     // empty if has_messages; else one line with the remedy
};

// `mask`: "" or "all" for everything there is, or "major.minor" ("5.15", "6.1", "6.8"): features
// that came with a newer kernel are reported absent. Errors: EINVAL (any other mask). What is
// missing is no error.
Result<KernelFeatures> detect_kernel_features(const std::string& mask);
// Whether detect_kernel_features takes it; else the error that it would return.
Status check_kernel_mask(const std::string& mask);

}  // namespace outcore::os
