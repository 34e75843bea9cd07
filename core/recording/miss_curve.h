// MissCurve: how many pages less would have to be brought in if the budget were larger.
//
// It sees the events of a sample of the pages (see EventRing): which are brought in, evicted,
// rescued. From that the policy is simulated at several budgets at once (OtherBudget), with about
// a thousand frames for the budget of now, however large it is. What pages do while they are in
// memory, which nobody sees, is drawn from what pages alike did (ReturnTimes). One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/policy/miniature.h"
#include "core/recording/other_budget.h"
#include "core/recording/return_times.h"

namespace outcore::recording {

class MissCurve {
 public:
  // Times the budget of now.
  static constexpr std::array kTimes{1.125, 1.25, 1.5, 1.75, 2.0,  2.5, 3.0,
                                     4.0,   5.0,  6.0, 8.0,  12.0, 16.0};
  // Frames of the budget of now in miniature, and pages that are remembered: at most.
  static constexpr uint64_t kFramesMax = 2048;
  static constexpr size_t kPagesMax = 1 << 16;

  // `policy`: its name; that of another than Outcore's own counts as the default. REQUIRES: a
  // budget.
  MissCurve(std::string policy, uint64_t budget_bytes);

  // What is in memory now, and may be. A change of the budget counts from now on.
  void set_memory(uint64_t resident_bytes, uint64_t budget_bytes);
  // Events are of one in so many pages, or more. REQUIRES: a power of two.
  void sample_one_in(uint64_t one_in);
  uint64_t sampled_one_in() const { return one_in_; }

  // `page`: a number that the page alone has; the lower 40 bits are its number in its store, by
  // which it is sampled. Those that are not in the sample are passed over. `is_guess`: it came in
  // beside another.
  void note_fill(uint64_t page, uint64_t page_bytes, bool is_guess);
  void note_rescue(uint64_t page);
  void note_eviction(uint64_t page);
  // Forgets pages that are gone.
  template <typename Stays>
  void keep(const Stays& stays) {
    for (auto it = pages_.begin(); it != pages_.end();)
      it = stays(it->second.name) ? std::next(it) : forget(it);
  }

  struct Point {
    uint64_t budget_bytes = 0;
    double misses = 0;  // of now's: 1 … 0
  };
  // From the budget on, as far as more memory would help. Empty: nothing was brought in.
  std::vector<Point> points() const;
  // Between two points on a line.
  double share_of_misses(uint64_t budget_bytes) const;

 private:
  struct Page {
    uint64_t name = 0;
    uint32_t page_class = ReturnTimes::kNew;
    bool is_out = false;
    double since = 0;  // of a page that is out: how many fills there were when it left
  };
  using Pages = std::unordered_map<PageKey, Page>;

  bool is_in_sample(uint64_t page) const;
  bool start();
  void fit();
  void refresh();
  void touch(PageKey key, bool is_guess);
  double forecast(PageKey key);
  Pages::iterator forget(Pages::iterator page);
  double share_at(size_t i) const;

  const std::string policy_;
  uint64_t budget_bytes_;
  uint64_t resident_bytes_ = 0;  // as it was last reported
  double page_share_ = 1;        // of the budget that pages have once it is used up
  uint64_t one_in_ = 1;
  bool is_started_ = false, has_failed_ = false, was_full_ = false, is_share_known_ = false;
  std::array<OtherBudget, kTimes.size()> others_;
  Pages pages_;
  ReturnTimes returns_;
  std::mt19937_64 random_;
  double fills_ = 0;  // of all pages, estimated from the sample
  double sample_bytes_ = 0, sample_fills_ = 0;
  uint64_t until_refresh_ = 1;
};

}  // namespace outcore::recording
