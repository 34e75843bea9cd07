// FaultSources: the userfaultfds of one runtime, opened when the first region needs them, and the
// choice among them.
#pragma once

#include <memory>
#include <mutex>

#include "core/os/fault_ranges.h"
#include "core/os/kernel_features.h"
#include "core/os/message_delivery.h"
#include "outcore/options.h"
#include "outcore/result.h"

namespace outcore::runtime {

// What a region gets.
struct Mechanism {
  Delivery delivery = Delivery::kInThread;
  FrameKind frames = FrameKind::kPrivate;
};

// What is asked for a region.
struct Wanted {
  Delivery delivery = Delivery::kAuto;
  FrameKind frames = FrameKind::kAuto;
  uint64_t page_bytes = 4096;
  bool is_writable = false;
  // The policy lives on pages that come back before they are freed, which private frames cannot
  // tell of reads.
  bool wants_rescue = false;
};

// Chooses for a region, and says why where what was asked for cannot be had.
Result<Mechanism> choose_mechanism(const os::KernelFeatures& kernel, const Wanted& wanted);

class FaultSources {
 public:
  FaultSources(const os::KernelFeatures& kernel, unsigned event_threads)
      : kernel_(kernel), event_threads_(event_threads) {}
  FaultSources(const FaultSources&) = delete;
  FaultSources& operator=(const FaultSources&) = delete;
  ~FaultSources();

  // REQUIRES: not mprotect. The source lives as long as this.
  Result<const os::FaultSource*> source_for(const Mechanism& mechanism);

 private:
  Status open(os::FaultSource& source, bool is_messages, bool is_shared);

  const os::KernelFeatures kernel_;
  const unsigned event_threads_;
  std::mutex opening_;
  int pagemap_ = -1;
  os::FaultSource source_[2][2];  // [messages][shared]
  std::unique_ptr<os::MessageDelivery> delivery_[2];
};

// Installs the process's fault handlers (once), and what keeps a forked child from paging.
void install_handlers(bool needs_segv);

}  // namespace outcore::runtime
