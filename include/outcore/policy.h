// Policy: chooses the frames that are evicted when memory is full.
//
// Each shard has a policy of its own, called only by the thread that holds the shard's turn: one
// call at a time, so it needs no locks. It sees frame numbers and page keys, never memory, stores
// or page states. It gets fills and rescues, but not hits, because hits cannot be observed
// (docs/internals/decisions/0003-policies-and-readahead.md), unless it asks for probes of a few
// pages (docs/internals/decisions/0039-policy-by-miniatures.md).
//
// A program chooses a policy by name and parameters (RuntimeOptions::policy,
// docs/reference/policies.md). It cannot give a runtime a class of its own: this header is for
// people who add a policy to Outcore, and for programs that simulate one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "outcore/metrics.h"
#include "outcore/result.h"

namespace outcore {

// A frame's number, 0 … frames_max - 1. While the frame holds a page, the number belongs to that
// page.
enum class FrameId : uint32_t {};
inline constexpr FrameId kNoFrame{0xFFFFFFFF};

// Identifies a page in a policy's history, even after it was evicted: always the same for the same
// page, and well mixed (uniform in all bits).
using PageKey = uint64_t;

class Policy {
 public:
  virtual ~Policy() = default;

  // The page `key` was brought into `frame`, which is now resident. REQUIRES: the policy does not
  // know the frame.
  virtual void filled(FrameId frame, PageKey key) = 0;

  // The same for a page that nobody asked for: it was brought in beside another, because there was
  // room. It should leave before pages that were asked for.
  virtual void guessed(FrameId frame, PageKey key) { filled(frame, key); }

  // The same for a page that another policy had, and gave up to this one: those that it would have
  // evicted first come first.
  virtual void taken_over(FrameId frame, PageKey key) { filled(frame, key); }

  // The page of a frame that was removed is evictable again: it was unpinned.
  // REQUIRES: as filled().
  virtual void returned(FrameId frame, PageKey key) { filled(frame, key); }

  // Chooses up to out.size() resident frames as victims, and returns how many (0 only if none is
  // resident). They are now leaving: unmapped, but still holding their bytes. Cost: O(1) amortised
  // per victim.
  virtual size_t choose_victims(std::span<FrameId> out) = 0;

  // A leaving frame was touched before it was freed: it is resident again.
  virtual void rescued(FrameId frame) = 0;

  // A victim is resident again, though nobody touched it: it could not leave (its bytes could not
  // be stored, or another thread was using it).
  virtual void put_back(FrameId frame) { rescued(frame); }

  // A leaving frame was freed. The policy forgets the frame; it may keep the key (ghosts, fault
  // counts).
  virtual void freed(FrameId frame) = 0;

  // A resident or leaving frame was removed without having been a victim: its page was pinned,
  // discarded or unmapped. The policy forgets it. It may come back by returned().
  virtual void removed(FrameId frame) = 0;

  // Chooses up to out.size() resident frames to be probed, and returns how many: unmapped, to see
  // whether they are touched. For the policy they stay resident. `price` is what a probe costs that
  // is touched, half of it the unmapping and half the touch, where a miss costs kMissPrice;
  // kNoProbes: pages cannot be probed. `paid`: for so many halves there was time since the last
  // call, if probes are to take a sixty-fourth of it.
  static constexpr uint32_t kMissPrice = 256, kNoProbes = UINT32_MAX;
  virtual size_t choose_probes(std::span<FrameId> out, uint32_t price, uint32_t paid) {
    static_cast<void>(out), static_cast<void>(price), static_cast<void>(paid);
    return 0;
  }
  // A resident frame was touched, which was seen because it was being probed.
  virtual void touched(FrameId frame) { static_cast<void>(frame); }

  // How many victims should stay in memory as leaving before they are freed (an eviction queue as a
  // victim buffer); at most `capacity` / 2. 0: victims are freed at once.
  virtual size_t leaving_target() const { return 0; }

  // The number of frames that the policy may plan with; changed by resize_budget. Never more than
  // frames_max.
  virtual void set_capacity(size_t frames) = 0;

  // Whether the frame is resident, and not leaving. REQUIRES: the policy knows it.
  virtual bool is_resident(FrameId frame) const = 0;
  // The key of a frame that the policy knows.
  virtual PageKey key_of(FrameId frame) const = 0;
  virtual size_t resident_count() const = 0;
  virtual size_t leaving_count() const = 0;
  virtual bool is_valid() const = 0;  // O(n); checked builds and tests
  virtual std::string name() const = 0;
  // Of a policy that takes one of several: the name of that one, which stays in memory; empty of
  // others.
  virtual std::string_view taken() const { return {}; }
  virtual size_t metadata_bytes() const = 0;
  // Any thread.
  virtual PolicyMetrics metrics() const { return {name(), 0, 0, 0, {}, 0}; }
};

// Makes a policy from its name and parameters: "auto", "s3-fifo", "s3-fifo:small=10%,cool=5%",
// "di-mmap:hot=75%", "fifo". frames_max bounds every FrameId that is ever passed. Memory is
// reserved at once and touched as it is used (at most 32 bytes a frame and 8 bytes a page of
// history). Errors: EINVAL; the message names the nearest policy or parameter.
Result<std::unique_ptr<Policy>> make_policy(const std::string& name, size_t frames_max,
                                            size_t capacity);

}  // namespace outcore
