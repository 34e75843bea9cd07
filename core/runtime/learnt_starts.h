// LearntStarts: what of its files a runtime keeps in profiles, and what profiles bring in ahead.
// See learner.h.
//
// Under the mapping lock, but for what says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/paging/page_cache.h"
#include "core/runtime/learner.h"
#include "core/runtime/runtime_impl.h"

namespace outcore::runtime {

class LearntStarts {
 public:
  explicit LearntStarts(Runtime::Impl& runtime) : runtime_(runtime) {}

  // Begins with the profile of the option `learn`, if there is one. Once, at the start.
  void start();
  // The first profile is the option's. Constant once it has started; any thread.
  bool learns_by_option() const { return learns_by_option_; }
  // Files of which the option's profile brings something in. Any thread, without the lock.
  uint64_t replayed_files() const { return replayed_files_.load(); }
  // What is wrong with the profile of the option `learn`; empty: nothing, or there is none. Takes
  // the mapping lock.
  std::string complaint();
  // By the option's profile, for a region that has just been mapped.
  void learn_by_option(Region::Impl& region);
  // Brings in ahead what the profile has of the bytes [from, to) of the region's store, and records
  // from now on. Errors: see Region::learn.
  Status learn(Region::Impl& region, const std::string& profile, uint64_t from, uint64_t to);
  // The cache is about to go.
  void end(const paging::PageCache& cache);
  // Adds to the profiles what was learnt since that was last done; with `may_wait` false it does
  // not wait long for who maps or unmaps. Takes the mapping lock, not for the files. Errors: those
  // of the files; EAGAIN (at another time it may do).
  Status keep(bool may_wait);

  std::atomic<bool> keeps_at_exit{false};

 private:
  void count_replayed_files();

  Runtime::Impl& runtime_;
  // They outlive the caches, which note in their logs.
  std::vector<std::unique_ptr<Learner>> learners_;
  bool learns_by_option_ = false;
  std::atomic<uint64_t> replayed_files_{0};
};

}  // namespace outcore::runtime
