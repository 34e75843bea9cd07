// AutoPolicy: takes the policy that would miss least (PolicyTrial), and changes when another would.
// The holder of the shard's turn calls it.
//
// After a change the new policy has all pages that come; the pages of the old one are given up to
// it a thousand at each choice of victims, those that the old would have evicted first, first.
// Until it has none left, victims come from the old one.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "core/os/address_space.h"
#include "core/policy/policy_name.h"
#include "core/policy/policy_trial.h"
#include "outcore/policy.h"

namespace outcore::policy {

class AutoPolicy final : public Policy {
 public:
  static constexpr std::string_view kName = "auto";
  static constexpr std::array<std::string_view, 3> kCandidates = {"s3-fifo", "di-mmap", "fifo"};
  // The same on a smaller scale: as many pages share a fault count.
  static constexpr std::array<std::string_view, 3> kMiniatures = {"s3-fifo", "di-mmap:buckets=1024",
                                                                  "fifo"};
  using Parameters = std::array<Parameter, 1>;
  // wait: of the longest sleep between trials, how much comes before the first one.
  static constexpr Parameters kParameters = {{{"wait", 100, 0, 100}}};

  explicit AutoPolicy(const Parameters& parameters) : parameters_(parameters) {}
  // Errors: of make_policy.
  Status allocate(size_t frames_max);

  void filled(FrameId frame, PageKey key) override;
  void guessed(FrameId frame, PageKey key) override;
  size_t choose_victims(std::span<FrameId> out) override;
  void returned(FrameId frame, PageKey key) override;
  void rescued(FrameId frame) override;
  void put_back(FrameId frame) override;
  void freed(FrameId frame) override;
  void removed(FrameId frame) override;
  size_t choose_probes(std::span<FrameId> out, uint32_t price, uint32_t paid) override;
  void touched(FrameId frame) override;
  size_t leaving_target() const override { return live().leaving_target(); }
  void set_capacity(size_t frames) override;
  PageKey key_of(FrameId frame) const override { return owner_of(frame).key_of(frame); }
  bool is_resident(FrameId frame) const override { return owner_of(frame).is_resident(frame); }
  size_t resident_count() const override;
  size_t leaving_count() const override;
  bool is_valid() const override;
  std::string name() const override { return format_name(kName, parameters_); }
  std::string_view taken() const override { return kCandidates[trial_.live()]; }
  size_t metadata_bytes() const override;
  PolicyMetrics metrics() const override;

 private:
  static constexpr uint32_t kMovesMax = 1024;  // pages handed over at once
  static constexpr uint32_t kLooksMax = 4096;  // frames looked at at once

  Policy& live() { return *policies_[trial_.live()]; }
  const Policy& live() const { return *policies_[trial_.live()]; }
  Policy& owner_of(FrameId frame) const;
  void assign_to_live(FrameId frame);
  void note(FrameId frame, PageKey key, Touch touch);
  void hand_over();
  void look_anew();

  const Parameters parameters_;
  PolicyTrial trial_;
  std::unique_ptr<Policy> policies_[kCandidates.size()];
  os::Table<uint8_t> owner_;  // by frame: the number of its policy + 1; 0: nobody's
  uint32_t used_once_ = 0;    // frames from here on never had a page
  uint32_t next_look_ = 0;    // frames from here on are to be looked at
  // For metrics().
  std::atomic<uint64_t> changes_{0}, probes_{0}, probes_touched_{0};
  std::atomic<uint32_t> live_now_{0};
};

}  // namespace outcore::policy
