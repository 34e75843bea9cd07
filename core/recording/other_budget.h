// OtherBudget: what would be in memory if the budget were another: the policy with as many frames
// as it would have, in miniature, for a sample of the pages (Waldspurger et al., "Cache modeling
// and optimization using miniature simulations", USENIX ATC 2017).
//
// It is shown what the pager sees: misses and rescues. That is not all that it would see itself: a
// page that it drops earlier than the pager may be touched meanwhile, unseen. When that would be is
// drawn from what pages alike do (ReturnTimes), and shown to it at that time, unless the page has
// left the pager's memory before: from then on its touches are seen. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/policy/miniature.h"
#include "core/policy/probe_queue.h"
#include "outcore/result.h"

namespace outcore::recording {

class OtherBudget {
 public:
  // From now on, the fills until a page that is in memory will be touched; not finite: never, or it
  // is not in memory.
  using Forecast = std::function<double(PageKey)>;

  // REQUIRES: called once, first. Errors: of make_policy, ENOMEM.
  Status allocate(const std::string& policy, uint32_t frames_max);
  // About so many. REQUIRES: 0 < frames <= frames_max.
  void set_capacity(uint32_t frames);

  // The page is touched, or brought in as a guess, after so many fills.
  void touch(PageKey key, bool is_guess, double now, const Forecast& forecast);
  // The touches until now that are not seen.
  void advance(double now, const Forecast& forecast);
  // The touches of the page are seen from now on.
  void note_seen(PageKey key) { due_.erase(key); }
  void forget(PageKey key);

  bool has(PageKey key) { return miniature_.has(key); }
  double misses() const { return misses_; }
  // What follows counts so many times as much.
  void weigh(double weight) { weight_ = weight; }

 private:
  using Due = std::pair<double, PageKey>;
  void drop_stale();

  policy::Miniature miniature_;
  policy::ProbeQueue dropped_;
  std::unordered_map<PageKey, double> due_;
  // Those whose time in due_ is another are stale.
  std::priority_queue<Due, std::vector<Due>, std::greater<>> next_;
  double misses_ = 0, weight_ = 1;
};

}  // namespace outcore::recording
