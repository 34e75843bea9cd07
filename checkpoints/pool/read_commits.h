// ReadCommits: the commits that snapshots of this process read, whose blocks must not be freed. A
// commit is counted once for each snapshot. Any thread but the fault path.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "core/base/assert.h"

namespace outcore::versioned {

class ReadCommits {
 public:
  void add(uint32_t commit) {
    const std::lock_guard guard(mutex_);
    ++counts_[commit];
  }
  void remove(uint32_t commit) {
    const std::lock_guard guard(mutex_);
    OC_CHECK(counts_.contains(commit));
    if (--counts_[commit] == 0) counts_.erase(commit);
  }
  bool has(uint32_t commit) const {
    const std::lock_guard guard(mutex_);
    return counts_.contains(commit);
  }
  std::vector<uint32_t> all() const {
    const std::lock_guard guard(mutex_);
    std::vector<uint32_t> commits;
    for (const auto& [commit, count] : counts_) commits.push_back(commit);
    return commits;
  }

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, uint32_t> counts_;
};

}  // namespace outcore::versioned
