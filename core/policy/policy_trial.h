// PolicyTrial: which of several policies would miss least, by a miniature of each. It is shown all
// touches of a sample of the pages that any miniature needs to see. The holder of the shard's turn;
// allocates only in allocate().
//
// The sample consists of the pages whose keys have zeros in a few bits: one page in 2^k, so that a
// miniature has about a thousand frames (SHARDS: Waldspurger et al., FAST 2015, sections 2 and 3).
//
// A pager sees no hits; but a hit in every miniature changes none of them. What must be seen is the
// next touch of a page that some miniature has dropped while it is in memory. Such a page is to be
// probed: unmapped where it is, so that its touch is a fault. So the trial knows of each miss of
// each policy, not only an estimate, and probes no more pages than miniatures drop.
//
// When another policy takes over: for each policy the cost that it would have saved is added up,
// less a margin, and never below zero (CUSUM: Page, "Continuous inspection schemes", Biometrika
// 1954). A sum that reaches a quarter of the memory's misses is a reason to change: a change costs
// about as much. So large differences are found soon, small ones late, and none by chance.
//
// The live policy counts with what it costs itself, on the same pages: it may be in another state
// than its miniature, which has been at work all the time.
//
// Unmapping a page to probe it costs a flush, and its touch a fault; that is a debt, which passing
// time pays off, a sixty-fourth of it. A trial deep in debt sleeps, and it begins in debt: a short
// run pays nothing. When it wakes, all pages of the sample are looked at anew.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/policy/miniature.h"
#include "core/policy/probe_queue.h"
#include "outcore/policy.h"

namespace outcore::policy {

// How a touch was seen: what it cost the live policy.
enum class Touch : uint8_t { kMiss, kRescue, kOfProbed, kGuess };

class PolicyTrial {
 public:
  static constexpr uint32_t kCandidatesMax = 3;
  // Of a miniature: 1024 or up to twice as many; in small memories fewer. The sample is one page in
  // 2^kShiftLeast at most, or probes would cost more than they are worth: memories of less than
  // 16,384 frames have no trial, nor have those of more than 2^26.
  static constexpr uint32_t kFramesWanted = 1024, kFramesLeast = 512;
  static constexpr uint32_t kShiftLeast = 5, kShiftMost = 15;

  // Candidates by their names for make_policy(); the first is live. The trial begins with so many
  // percent of the largest debt. REQUIRES: called once, first. Errors: of make_policy.
  Status allocate(std::span<const std::string_view> candidates, uint32_t first_debt_percent);
  // The number of frames that the live policy plans with.
  void set_capacity(size_t frames);

  bool is_sampled(PageKey key) const {
    return is_on_ && (key >> kSampleBit & ((uint64_t{1} << shift_) - 1)) == 0;
  }
  // A page of the sample was touched, or brought in as a guess. REQUIRES: is_sampled(key).
  void touch(PageKey key, FrameId frame, Touch touch);
  // -- probes --
  // Once a turn, see Policy::choose_probes; a rescue costs the same. kNoProbes: pages cannot be
  // probed. Then nothing can be compared, and the first candidate becomes the live one, until pages
  // can be probed for a while.
  void set_price(uint32_t price, uint32_t paid);
  bool is_awake() const { return is_on_ && !is_asleep_; }
  // True once after touches went by unseen: every resident page of the sample that is not known
  // everywhere is to be asked for.
  bool must_look_anew();
  bool is_known_everywhere(PageKey key);
  void ask_for(const ProbeRequest& request) { probes_.push(request); }
  bool has_probes() const { return !probes_.is_empty(); }
  ProbeRequest next_probe() { return probes_.pop(); }
  // Pages were unmapped to be probed; or a touch was seen because its page was.
  void note_probes(size_t count) { owe(count); }
  void note_probe_touched() { owe(1); }

  // -- the outcome --
  uint32_t live() const { return live_; }
  uint32_t candidates() const { return candidates_; }
  // Whether another candidate should be the live one; if so, makes it that. Without a trial it is
  // the first.
  bool change();
  // Recent cost of a candidate, for comparison with those of the others; of candidates(), of the
  // first one with twice the memory. Any thread.
  uint64_t cost(uint32_t candidate) const {
    return cost_[candidate].load(std::memory_order_relaxed);
  }

  bool is_valid() const;
  uint64_t metadata_bytes() const;

 private:
  static constexpr uint32_t kMiniaturesMax = kCandidatesMax + 1;
  // Bits of a key that neither ghosts, fault counts nor miniatures use to find a place.
  static constexpr uint32_t kSampleBit = 16;
  static constexpr uint32_t kMarginShare = 32;  // 3 %
  static constexpr uint32_t kBlindTurns = 64;

  void add_costs(Touch touch, const uint32_t (&costs)[kMiniaturesMax]);
  uint32_t miniatures() const { return candidates_ + 1; }
  int64_t gain_wanted() const { return int64_t{frames_} * Policy::kMissPrice / 4; }
  // In halves of the price, in one go, until a sleep: four touches of each frame of a miniature.
  int64_t debt_max() const { return int64_t{frames_} * 8; }
  // Counts nothing until the miniatures have seen most of their pages.
  void warm_up() { touches_left_out_ = frames_ + frames_ / 2; }
  void wake_up();
  void fall_asleep();
  void owe(size_t halves);

  // One a candidate; and one of the first with twice the frames, which shows what a larger budget
  // is worth.
  Miniature miniatures_[kMiniaturesMax];
  ProbeQueue probes_;
  uint32_t candidates_ = 0, live_ = 0;
  uint32_t shift_ = 0, frames_ = 0;  // of the sample; frames of a miniature
  uint32_t price_ = Policy::kMissPrice;
  bool is_on_ = false, is_asleep_ = false, must_look_anew_ = false;
  uint32_t blind_turns_ = 0;  // until pages are believed to be such as can be probed
  int64_t debt_ = 0;          // in halves of the price
  uint32_t first_debt_percent_ = 100;
  uint32_t touches_left_out_ = 0;      // not counted: the miniatures are not warm
  uint64_t touches_ = 0;               // counted since costs were last halved
  int64_t gain_[kCandidatesMax] = {};  // over the live policy
  std::atomic<uint64_t> cost_[kMiniaturesMax] = {};
};

}  // namespace outcore::policy
