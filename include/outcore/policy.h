// Policy: which frames leave when memory is full.
//
// A policy belongs to one shard and is called by whoever holds that shard's turn, one call at a
// time: it needs no locks. It sees frame numbers and page keys, never memory, stores or pages'
// states. It hears of fills and rescues, never of hits: nobody can see those
// (docs/internals/decisions/0003-policies-and-readahead.md).
//
// A program chooses a policy by its name and parameters (RuntimeOptions::policy,
// docs/reference/policies.md). It cannot give a runtime a class of its own: this header is for
// those who add one to Outcore, and for programs that simulate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "outcore/result.h"

namespace outcore {

// A frame's number, 0 … frames_max - 1. While it holds a page, nothing else has this number.
enum class FrameId : uint32_t {};
inline constexpr FrameId kNoFrame{0xFFFFFFFF};

// A page's name, for history beyond its stay: equal for the same page, well mixed (uniform in all
// bits).
using PageKey = uint64_t;

class Policy {
 public:
  virtual ~Policy() = default;

  // The page `key` came in, in `frame`. Outcome: the frame is resident. REQUIRES: frame is unknown
  // to the policy.
  virtual void filled(FrameId frame, PageKey key) = 0;

  // Chooses up to out.size() resident frames to leave, and returns how many (0 only if none is
  // resident). They are then leaving: unmapped, but still holding their bytes. Cost: O(1) amortised
  // a victim.
  virtual size_t choose_victims(std::span<FrameId> out) = 0;

  // A leaving frame was touched before it was freed: it is resident again.
  virtual void rescued(FrameId frame) = 0;

  // A leaving frame was freed. The policy forgets the frame; it may keep the key (ghosts, fault
  // counts).
  virtual void freed(FrameId frame) = 0;

  // A frame (resident or leaving) is out of the policy's hands without being a victim: pinned,
  // discarded, unmapped. The policy forgets it. It may come again by filled().
  virtual void removed(FrameId frame) = 0;

  // Frames that should rest as leaving before they are freed (an eviction queue as a victim
  // buffer), at most `capacity` / 2. 0: free at once.
  virtual size_t leaving_target() const { return 0; }

  // Frames that the policy may plan with; changes by resize_budget. Never called with more than
  // frames_max.
  virtual void set_capacity(size_t frames) = 0;

  virtual size_t resident_count() const = 0;
  virtual size_t leaving_count() const = 0;
  virtual bool is_valid() const = 0;  // O(n); checked builds and tests
  virtual std::string name() const = 0;
  virtual size_t metadata_bytes() const = 0;
};

// Makes a policy from its name and parameters: "s3-fifo", "s3-fifo:small=10%,cool=5%",
// "di-mmap:hot=75%", "fifo". frames_max bounds every FrameId ever passed; memory is reserved at
// once and touched as used (at most 32 bytes a frame and 8 bytes a page of history). Errors: EINVAL
// naming the nearest policy or parameter.
Result<std::unique_ptr<Policy>> make_policy(const std::string& name, size_t frames_max,
                                            size_t capacity);

}  // namespace outcore
