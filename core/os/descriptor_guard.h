// DescriptorGuard: keeps what a descriptor names alive although another caller closes the number:
// by a thread that has a table of descriptors of its own, with that one alone.
//
// For the userfaultfd of a buffer's views: when its last descriptor is closed the kernel forgets
// which pages are missing, and the next touch of one would put zeros there, for all who share it.
// A program may close all descriptors by calls that nobody sees. Any thread but the fault path.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "outcore/result.h"

namespace outcore::os {

class DescriptorGuard {
 public:
  // Errors: EAGAIN (no thread could be started), EPERM (the kernel gives no table of its own).
  static Result<std::unique_ptr<DescriptorGuard>> start(int fd);
  ~DescriptorGuard();
  DescriptorGuard(const DescriptorGuard&) = delete;
  DescriptorGuard& operator=(const DescriptorGuard&) = delete;

 private:
  DescriptorGuard() = default;
  void run(int fd);

  std::atomic<uint32_t> state_{0};  // kStarting, then kThere or kFailed; kEnding
  std::thread thread_;
};

}  // namespace outcore::os
