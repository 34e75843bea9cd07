// Kernel features: what this kernel allows this process, found out by trying it once. Any thread;
// not on the fault path.
#pragma once

#include <string>

#include "outcore/result.h"

namespace outcore::os {

struct KernelFeatures {
  bool has_sigbus = false;  // userfaultfd in SIGBUS mode (user mode is enough): in-thread delivery
  bool has_messages = false;  // userfaultfd messages, also for faults inside system calls
  // Private frames can be writable: a write to a clean page is a fault.
  bool has_anonymous_wp = false;
  // Shared frames: missing and minor faults, WP_ASYNC and PAGEMAP_SCAN (6.7).
  bool has_write_tracking = false;
  bool has_minor_shmem = false;  // UFFDIO_CONTINUE on a memfd
  bool has_continue_wp = false;  // UFFDIO_CONTINUE can map the page write-protected (6.4)
  bool has_poison = false;       // UFFDIO_POISON (6.6)
  bool has_move = false;         // UFFDIO_MOVE (6.8)
  // process_madvise(DONTNEED and REMOVE) on the own process (6.13)
  bool has_batched_advice = false;
  bool has_pagemap = false;  // /proc/self/pagemap shows write protection (bit 57, 5.14)
  bool has_io_uring = false;
  bool is_masked = false;          // newer features were left out on request
  std::string release;             // "6.8.0-45-generic"
  std::string why_no_userfaultfd;  // empty if has_sigbus; else one line with the remedy
  std::string why_no_messages;     // empty if has_messages; else one line with the remedy
};

// `mask`: "" or "all" for all features, or "major.minor" ("5.15", "6.1", "6.8"): features of newer
// kernels are reported as absent. Errors: EINVAL (any other mask). Missing features are not an
// error.
Result<KernelFeatures> detect_kernel_features(const std::string& mask);
// Ok if detect_kernel_features accepts the mask; otherwise the error that it would return.
Status check_kernel_mask(const std::string& mask);

}  // namespace outcore::os
