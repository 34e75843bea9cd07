#include "core/runtime/fault_sources.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/descriptor_place.h"
#include "core/os/memory_file.h"
#include "core/os/parents_descriptors.h"
#include "core/os/signal_delivery.h"
#include "core/os/uapi.h"
#include "core/os/userfaultfd.h"
#include "core/paging/fault_path.h"
#include "core/paging/fault_reason.h"
#include "core/region/address_map.h"
#include "core/runtime/fork.h"
#include "core/runtime/inheritance.h"

namespace outcore::runtime {
namespace {

// No view contains the address. But the touch may be older than an unmapping, if this thread was
// off the processor in between; then the mapping that is there now (the kernel's, after a region
// was handed back) answers it. So the touch is repeated once for each change of the map, but not
// without limit where the map changes all the time.
os::FaultOutcome answer_to_nobodys(const std::byte* address) {
  constexpr uint32_t kTriesMax = 8;
  if (Inheritance::wait_for_attaching()) return os::FaultOutcome::kDone;
  static thread_local uint64_t seen_changes = 0;
  static thread_local const std::byte* seen_address = nullptr;
  static thread_local uint32_t tries = 0;
  const uint64_t changes = region::AddressMap::instance().changes();
  tries = address == seen_address ? tries + 1 : 1;
  seen_address = address;
  if (changes == seen_changes || tries > kTriesMax) {
    tries = 0;
    return os::FaultOutcome::kNotOurs;
  }
  seen_changes = changes;
  return os::FaultOutcome::kDone;
}

os::FaultOutcome on_fault(const os::Touch& touch) {
  std::byte* const address = touch.address;
  region::View* view = region::AddressMap::instance().find_and_hold(address);
  if (view == nullptr) return answer_to_nobodys(address);
  if (view->is_inherited.load(std::memory_order_relaxed)) {
    region::AddressMap::release(view);
    return answer_inherited(address) ? os::FaultOutcome::kDone : os::FaultOutcome::kNotOurs;
  }
  if (os::is_handler_stack_too_small()) {
    region::AddressMap::release(view);
    return os::FaultOutcome::kFailed;
  }
  paging::FaultPath* path = view->cache->fault_path;
  OC_CHECK(path != nullptr);
  const os::FaultOutcome outcome =
      path->fault(*view, address, touch.is_write, touch.site, touch.heard_ns);
  region::AddressMap::release(view);
  return outcome;
}

// Passes touches of one region on together.
void on_many(std::span<const os::Touch> touches) {
  while (!touches.empty()) {
    region::View* view = region::AddressMap::instance().find_and_hold(touches[0].address);
    size_t n = 1;
    if (view != nullptr) {
      while (n < touches.size() && view->contains(touches[n].address)) ++n;
      view->cache->fault_path->fill_many(*view, touches.first(n));
      region::AddressMap::release(view);
    }
    OC_CHECK(n <= touches.size());
    touches = touches.subspan(n);
  }
}

}  // namespace

void install_handlers(bool needs_segv) {
  static_cast<void>(region::AddressMap::instance());  // created now, not by the first fault
  os::install_bus_handler(on_fault, paging::last_fault_reason);
  if (needs_segv) os::install_segv_handler(on_fault, paging::last_fault_reason);
}

Result<Mechanism> choose_mechanism(const os::KernelFeatures& kernel, const Wanted& wanted) {
  Delivery delivery = wanted.delivery;
  FrameKind frames = wanted.frames;
  const bool is_writable = wanted.is_writable;
  if (delivery == Delivery::kAuto)
    delivery = kernel.has_sigbus ? Delivery::kInThread : Delivery::kMprotect;
  if (delivery == Delivery::kMprotect) {
    if (frames == FrameKind::kPrivate)
      return Error{EINVAL,
                   "private frames need userfaultfd; with delivery mprotect frames are shared"};
    return Mechanism{delivery, FrameKind::kShared};
  }
  if (!kernel.has_sigbus) return Error{EPERM, "delivery in-thread: " + kernel.why_no_userfaultfd};
  if (delivery == Delivery::kMessages && !kernel.has_messages)
    return Error{EPERM, "delivery messages: " + kernel.why_no_messages};
  const bool has_private_writes = kernel.has_anonymous_wp && kernel.has_pagemap;
  if (frames == FrameKind::kShared && !kernel.has_write_tracking)
    return Error{
        ENOTSUP,
        "shared frames need Linux 6.7 (write tracking): use frames=private or delivery=mprotect"};
  if (frames == FrameKind::kPrivate && is_writable && !has_private_writes)
    return Error{ENOTSUP,
                 "writable private frames need Linux 5.14 (write protection in pagemap): use "
                 "delivery=mprotect"};
  if (frames == FrameKind::kAuto) {
    // Private frames have the cheapest fill and eviction, but write faults: one for each 4 KiB that
    // was read first, and for messages each has a context switch.
    const bool has_few_write_faults = has_private_writes && delivery == Delivery::kInThread &&
                                      wanted.page_bytes == base::kSystemPage;
    const bool is_private = !wanted.wants_rescue && (!is_writable || has_few_write_faults);
    frames = kernel.has_write_tracking && !is_private ? FrameKind::kShared : FrameKind::kPrivate;
  }
  if (frames == FrameKind::kPrivate && is_writable && !has_private_writes)
    return Mechanism{Delivery::kMprotect, FrameKind::kShared};
  return Mechanism{delivery, frames};
}

FaultSources::~FaultSources() {
  for (auto& delivery : delivery_) delivery.reset();
  for (auto& row : guard_)
    for (auto& guard : row) guard.reset();
  for (auto& row : source_)
    for (const os::FaultSource& source : row)
      for (const int fd : {source.fd, source.nothing})
        if (fd >= 0) os::ParentsDescriptors::close(fd);
  if (pagemap_ >= 0) ::close(pagemap_);
}

Result<const os::FaultSource*> FaultSources::source_for(const Mechanism& mechanism) {
  return source_of(mechanism.delivery == Delivery::kMessages,
                   mechanism.frames == FrameKind::kShared ? kShared : kPrivate);
}

Result<const os::FaultSource*> FaultSources::source_for_writes(Delivery delivery) {
  return source_of(delivery == Delivery::kMessages, kWritten);
}

Result<const os::FaultSource*> FaultSources::source_of(bool is_messages, Kind kind) {
  const std::lock_guard<std::mutex> guard(opening_);
  os::FaultSource& source = source_[is_messages][kind];
  if (source.fd < 0)
    if (Status s = open(source, is_messages, kind); !s) return s.error();
  return &source;
}

Status FaultSources::guard(bool is_messages, bool is_written) {
  const std::lock_guard<std::mutex> guard(opening_);
  const Kind kind = is_written ? kWritten : kShared;
  const os::FaultSource& source = source_[is_messages][kind];
  OC_CHECK(source.fd >= 0);
  if (guard_[is_messages][kind] != nullptr) return {};
  Result<std::unique_ptr<os::DescriptorGuard>> started = os::DescriptorGuard::start(source.fd);
  if (!started) return started.error();
  guard_[is_messages][kind] = std::move(started).value();
  return {};
}

Status FaultSources::open(os::FaultSource& source, bool is_messages, uint8_t kind) {
  OC_CHECK(source.fd < 0);
  const bool is_shared = kind == kShared;
  if (pagemap_ < 0)
    pagemap_ = os::above_standard(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  uint64_t features = is_messages ? UFFD_FEATURE_THREAD_ID : UFFD_FEATURE_SIGBUS;
  if (is_shared)
    features |= UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM |
                UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
                os::kUffdFeatureWpUnpopulated | os::kUffdFeatureWpAsync;
  else if (kind == kWritten)
    features |= UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM |
                UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM |
                os::kUffdFeatureWpUnpopulated;
  else if (kernel_.has_anonymous_wp)
    features |= UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  if (is_messages && is_shared) features |= UFFD_FEATURE_EVENT_REMAP;  // for SharedFrames::replace
  if (is_messages && kernel_.has_poison) {
    features |= os::kUffdFeaturePoison;
  } else if (is_messages && source.nothing < 0) {
    Result<int> nothing = os::make_memory_file(0);
    if (!nothing) return nothing.error();
    source.nothing = nothing.value();
  }
  Result<int> fd = os::open_userfaultfd(features, is_messages);
  if (!fd) return fd.error();
  source.is_messages = is_messages;
  source.has_batched_advice = kernel_.has_batched_advice;
  source.has_poison = is_messages && kernel_.has_poison;
  source.pagemap = pagemap_;
  source.fd = fd.value();
  os::ParentsDescriptors::add(source.fd);
  if (!is_messages) return {};
  auto delivery = std::make_unique<os::MessageDelivery>(source, on_fault, on_many);
  Status started = delivery->start(event_threads_, event_batch_);
  if (!started) {  // without its threads a touch would wait forever
    delivery.reset();
    os::ParentsDescriptors::close(source.fd);
    source.fd = -1;
    return started;
  }
  delivery_[kind] = std::move(delivery);
  return {};
}

}  // namespace outcore::runtime
