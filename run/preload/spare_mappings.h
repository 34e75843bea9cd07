// SpareMappings: a few mappings that are there so that others can be made in their place: the
// kernel refuses mremap to a process that has nearly as many as it may have. Any thread.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "core/base/units.h"
#include "run/preload/real.h"

namespace outcore::preload {

class SpareMappings {
 public:
  SpareMappings() : at_(real().mmap(nullptr, kBytes, PROT_NONE, kFlags, -1, 0)) {
    for (uint64_t i = 0; is_there_ && i < kBytes; i += 2 * base::kSystemPage)
      is_there_ =
          real().mprotect(static_cast<std::byte*>(at_) + i, base::kSystemPage, PROT_READ) == 0;
  }
  ~SpareMappings() { release(); }
  SpareMappings(const SpareMappings&) = delete;
  SpareMappings& operator=(const SpareMappings&) = delete;
  // False: the process has nearly as many mappings as it may have.
  bool is_there() const { return is_there_; }
  void release() {
    if (at_ != MAP_FAILED) real().munmap(at_, kBytes);
    at_ = MAP_FAILED;
  }

 private:
  static constexpr uint64_t kBytes = 6 * base::kSystemPage;
  static constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

  void* at_;
  bool is_there_ = at_ != MAP_FAILED;
};

}  // namespace outcore::preload
