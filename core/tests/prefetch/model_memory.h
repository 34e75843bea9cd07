// ModelMemory: a model of memory for tests of the tuner (FetchTuner). One thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "core/prefetch/fetch_tuner.h"
#include "core/tests/sim/random.h"

namespace outcore::prefetch {

inline constexpr uint64_t kExtentPages = 512;

// Pages that are brought in stay until newer ones need their place.
class ModelMemory {
 public:
  // REQUIRES: the pages have numbers below `pages`.
  ModelMemory(uint64_t pages, uint64_t room) : is_in_(pages), room_(room) {
    EXPECT_TRUE(tuner_.allocate().ok());
  }

  // Whether the page had to be brought in.
  bool touch(uint64_t page, uint64_t site = 1) {
    ++touches_;
    if (is_in_.at(page)) return false;
    ++misses_;
    FetchTuner::Miss miss;
    miss.cache_id = history_.id;
    miss.page = page;
    miss.extent = page / kExtentPages;
    miss.site = site;
    miss.level_max = is_by_page_ ? 0 : FetchTuner::kLevelMax;
    miss.pages_end = is_in_.size();
    miss.room_pages = room_;
    miss.is_full = !is_roomy_ && order_.size() >= room_;
    miss.is_roomy = is_roomy_;
    miss.is_all_fitting = is_all_fitting_;
    miss.absent = {this, [](const void* of, uint64_t p) {
                     return !static_cast<const ModelMemory*>(of)->is_in_.at(p);
                   }};
    choice_ = {};
    const bool is_decided = !is_roomy_ && tuner_.is_decided(miss);
    if (is_decided)
      tuner_.note_miss(history_, page, room_);
    else
      choice_ = tuner_.choose(history_, miss);
    const uint64_t cluster = choice_.pages(), first = choice_.first(page);
    if (cluster > 1) ++clusters_, ahead_ += choice_.is_ahead ? 1 : 0;
    EXPECT_NE(choice_.left_out, page);
    if (choice_.left_out != FetchTuner::kNone) {
      EXPECT_GE(choice_.left_out, first);
      EXPECT_LT(choice_.left_out, std::min<uint64_t>(first + cluster, is_in_.size()));
    }
    uint32_t filled = 0;
    for (uint64_t p = first; p < std::min<uint64_t>(first + cluster, is_in_.size()); ++p) {
      if (is_in_[p] || p == choice_.left_out) continue;
      is_in_[p] = true;
      order_.push_back(p);
      ++filled;
      for (; order_.size() > room_; order_.pop_front()) is_in_[order_.front()] = false;
    }
    tuner_.note_brought_in(filled);
    brought_in_ += filled;
    history_.cost.note(filled, 60'000 + (filled - 1) * page_ns_);
    return true;
  }

  void set_room(bool is_roomy, bool is_all_fitting) {
    is_roomy_ = is_roomy;
    is_all_fitting_ = is_all_fitting;
  }
  void set_by_page() { is_by_page_ = true; }
  void set_page_ns(uint64_t ns) { page_ns_ = ns; }
  void start_counting() { misses_ = brought_in_ = touches_ = clusters_ = ahead_ = 0; }
  const FetchTuner::Choice& choice() const { return choice_; }
  const FetchHistory& history() const { return history_; }
  uint64_t misses() const { return misses_; }
  uint64_t brought_in() const { return brought_in_; }
  uint64_t clusters() const { return clusters_; }  // of more than a page
  uint64_t ahead() const { return ahead_; }        // of them, ahead of the miss

 private:
  FetchTuner tuner_;
  FetchCounts counts_;
  FetchHistory history_{counts_, 1};  // whatever tests ran before: chance depends on it
  std::vector<bool> is_in_;
  std::deque<uint64_t> order_;
  const uint64_t room_;
  bool is_roomy_ = false, is_all_fitting_ = false, is_by_page_ = false;
  uint64_t page_ns_ = 4'000;
  FetchTuner::Choice choice_;
  uint64_t misses_ = 0, brought_in_ = 0, touches_ = 0, clusters_ = 0, ahead_ = 0;
};

// Touches all pages of an extent, in any order.
inline void read_all(ModelMemory& memory, uint64_t extent, sim::Random& random, uint64_t site = 1) {
  std::vector<uint64_t> pages(kExtentPages);
  for (uint64_t i = 0; i < kExtentPages; ++i) pages[i] = extent * kExtentPages + i;
  for (uint64_t i = kExtentPages; i > 1; --i) std::swap(pages[i - 1], pages[random.below(i)]);
  for (const uint64_t page : pages) memory.touch(page, site);
}

}  // namespace outcore::prefetch
