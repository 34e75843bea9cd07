// Fifo: evicts pages in the order in which they came. With `cool=N%`, that share of the memory
// stays leaving before it is freed, and a page touched there starts again: a second chance without
// access bits.
#pragma once

#include <array>

#include "core/policy/policy_name.h"
#include "core/policy/queue_policy.h"

namespace outcore::policy {

class Fifo final : public QueuePolicy {
 public:
  static constexpr std::string_view kName = "fifo";
  using Parameters = std::array<Parameter, 1>;
  static constexpr Parameters kParameters = {{{"cool", 0, 0, 50}}};

  explicit Fifo(const Parameters& parameters)
      : QueuePolicy(parameters[0].value), parameters_(parameters) {}
  Status allocate(size_t frames_max) { return allocate_entries(frames_max); }
  std::string name() const override { return format_name(kName, parameters_); }

 private:
  Queue admit(Entry&) override { return Queue::kFirst; }
  Queue readmit(Entry&) override { return Queue::kFirst; }
  FrameId pick() override { return first().pop(entries_); }
  void forget(const Entry&, bool) override {}

  const Parameters parameters_;
};

}  // namespace outcore::policy
