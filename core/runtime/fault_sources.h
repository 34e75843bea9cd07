// FaultSources: the userfaultfds of one runtime, opened when a region first needs them, and the
// choice between them.
#pragma once

#include <memory>
#include <mutex>

#include "core/os/descriptor_guard.h"
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

// What a region asks for.
struct Wanted {
  Delivery delivery = Delivery::kAuto;
  FrameKind frames = FrameKind::kAuto;
  uint64_t page_bytes = 4096;
  bool is_writable = false;
  // The policy depends on rescues, and private frames cannot report a rescue by a read.
  bool wants_rescue = false;
};

// Chooses delivery and frames for a region. The error says why a request cannot be met.
Result<Mechanism> choose_mechanism(const os::KernelFeatures& kernel, const Wanted& wanted);

class FaultSources {
 public:
  FaultSources(const os::KernelFeatures& kernel, unsigned event_threads, unsigned event_batch)
      : kernel_(kernel), event_threads_(event_threads), event_batch_(event_batch) {}
  FaultSources(const FaultSources&) = delete;
  FaultSources& operator=(const FaultSources&) = delete;
  ~FaultSources();

  // The source lives as long as this object. Any thread. REQUIRES: not mprotect.
  Result<const os::FaultSource*> source_for(const Mechanism& mechanism);
  // The source for shared frames outlives whoever closes its descriptor (DescriptorGuard), as long
  // as this object. REQUIRES: it is open.
  Status guard(bool is_messages, bool is_written);
  // For frames of a buffer that views may write: writes to protected pages are faults. REQUIRES: as
  // source_for().
  Result<const os::FaultSource*> source_for_writes(Delivery delivery);

 private:
  Status open(os::FaultSource& source, bool is_messages, uint8_t kind);

  const os::KernelFeatures kernel_;
  const unsigned event_threads_, event_batch_;
  std::mutex opening_;
  int pagemap_ = -1;
  // Of frames: private; shared, whose writes the kernel tracks; those of a buffer that are written.
  enum Kind : uint8_t { kPrivate, kShared, kWritten, kKinds };
  Result<const os::FaultSource*> source_of(bool is_messages, Kind kind);

  os::FaultSource source_[2][kKinds];  // [messages]
  std::unique_ptr<os::MessageDelivery> delivery_[kKinds];
  std::unique_ptr<os::DescriptorGuard> guard_[2][kKinds];  // [messages]
};

// Installs the process's fault handlers, once, and what prevents a forked child from paging.
void install_handlers(bool needs_segv);

}  // namespace outcore::runtime
