// MemoryGroup: a memory cgroup of its own for one run, so that rivals get the same bytes. v1 or v2.
#pragma once

#include <cstdint>
#include <string>

#include "outcore/result.h"

namespace outcore::bench {

// The page cache counts against it. Needs root; the parent makes and destroys it, its processes
// join.
class MemoryGroup {
 public:
  MemoryGroup() = default;  // no group: join() succeeds and limits nothing
  // Errors: what is missing. A run without a group is still a run, but not "limited".
  static Result<MemoryGroup> make();
  MemoryGroup(MemoryGroup&& other) noexcept;
  MemoryGroup& operator=(MemoryGroup&& other) noexcept;
  ~MemoryGroup();  // takes the group away; what it still caches is dropped

  bool is_real() const { return !path_.empty(); }
  Status join() const;  // the calling process, from now on
  Status limit(uint64_t bytes) const;
  Status allow_swap() const;
  uint64_t usage_bytes() const;
  uint64_t peak_bytes() const;
  uint64_t limit_bytes() const;
  uint64_t kills() const;  // processes that the limit ended

 private:
  explicit MemoryGroup(std::string path, bool is_v2) : path_(std::move(path)), is_v2_(is_v2) {}
  void destroy();
  std::string path_;
  bool is_v2_ = false;
};

}  // namespace outcore::bench
