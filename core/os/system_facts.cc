#include "core/os/system_facts.h"

#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "core/base/units.h"
#include "core/os/memory_limit.h"

namespace outcore::os {
namespace {

constexpr uint64_t kMapsUsual = 65530;
constexpr uint64_t kLockedBytesUsual = uint64_t{8} << 20;

// Splits "what failed: why; the remedy" into detail and remedy.
SystemFact missing(const std::string& name, const std::string& why) {
  const size_t cut = why.find("; ");
  if (cut == std::string::npos) return {name, false, why, ""};
  return {name, false, why.substr(0, cut), why.substr(cut + 2)};
}

SystemFact needs_kernel(const std::string& name, bool is_there, const std::string& use,
                        const std::string& release, const std::string& instead) {
  if (is_there) return {name, true, use, ""};
  return {name, false, "missing: " + use, "Linux " + release + " has it; until then " + instead};
}

// The same for facts that need userfaultfd: where it is not allowed, a newer kernel is no remedy.
SystemFact needs_userfaultfd(const KernelFeatures& kernel, const SystemFact& fact) {
  if (fact.is_available || kernel.has_sigbus) return fact;
  return {fact.name, false, fact.detail, missing("", kernel.why_no_userfaultfd).remedy};
}

SystemFact kernel_fact(const KernelFeatures& kernel) {
  const std::string mask = kernel.is_masked ? ", newer features masked by the option kernel" : "";
  return {"kernel", true, "Linux " + kernel.release + mask, ""};
}

SystemFact delivery_fact(const KernelFeatures& kernel) {
  if (kernel.has_sigbus)
    return {"delivery", true, "auto is in-thread: the faulting thread fills, which is the fastest",
            ""};
  return {
      "delivery", false,
      "auto is mprotect, for userfaultfd is missing: slower, and better with pages of 64 KiB up",
      missing("", kernel.why_no_userfaultfd).remedy};
}

SystemFact frames_fact(const KernelFeatures& kernel) {
  if (!kernel.has_sigbus) return {"frames", true, "auto is shared, with mprotect", ""};
  if (kernel.has_write_tracking)
    return {"frames", true,
            "auto is private for regions that are read-only, or in-thread with pages of 4 KiB "
            "(these change to shared where pages are read before they are written); shared for "
            "others",
            ""};
  if (kernel.has_anonymous_wp && kernel.has_pagemap)
    return {"frames", true, "auto is private: first writes to clean pages take a fault", ""};
  return {"frames", true, "auto is private; regions that can be written fall back to mprotect", ""};
}

void add_fault_facts(const KernelFeatures& kernel, std::vector<SystemFact>* facts) {
  facts->push_back(delivery_fact(kernel));
  facts->push_back(frames_fact(kernel));
  facts->push_back(
      kernel.has_sigbus
          ? SystemFact{"in-thread faults", true,
                       "userfaultfd raises SIGBUS in the faulting thread; a system call on "
                       "an absent page gets EFAULT",
                       ""}
          : missing("in-thread faults", kernel.why_no_userfaultfd));
  facts->push_back(kernel.has_messages ? SystemFact{"message faults", true,
                                                    "userfaultfd reports faults to event threads, "
                                                    "also those inside system calls",
                                                    ""}
                                       : missing("message faults", kernel.why_no_messages));
  const auto add = [&](const SystemFact& fact) {
    facts->push_back(needs_userfaultfd(kernel, fact));
  };
  add(needs_kernel("write tracking", kernel.has_write_tracking,
                   "shared frames: the kernel tracks writes at 4 KiB without faults", "6.7",
                   "regions that can be written use private frames"));
  add(needs_kernel("write faults", kernel.has_anonymous_wp && kernel.has_pagemap,
                   "private frames can be written: protected pages, read from pagemap", "5.14",
                   "regions that can be written use other frames"));
  add(needs_kernel("poison", kernel.has_poison,
                   "in messages delivery, a failed page takes no mapping of its own", "6.6",
                   "a failed page takes a mapping of its own"));
  facts->push_back(needs_kernel(
      "batched eviction", kernel.has_batched_advice, "many ranges leave memory in one system call",
      "6.13", "neighbours are joined, which costs more where pages are scattered"));
}

SystemFact io_uring_fact(const KernelFeatures& kernel) {
  if (kernel.has_io_uring)
    return {"io_uring", true, "many transfers in flight from one thread, with registered buffers",
            ""};
  return {"io_uring", false, "missing: stores read and write one transfer a thread",
          "set sysctl kernel.io_uring_disabled=0; in a container its seccomp profile must allow "
          "io_uring"};
}

SystemFact memory_fact(const std::string& root) {
  const MemoryAvailable available = memory_available(root);
  const auto [budget, why] = default_budget_of(available);
  const std::string detail = base::format_bytes(available.bytes) + " available " +
                             available.source + "; the default budget is " +
                             base::format_bytes(budget);
  if (budget * 2 <= available.bytes + (uint64_t{1} << 20)) return {"memory", true, detail, ""};
  return {"memory", false, detail, "raise the limit, end other programs, or set a smaller budget"};
}

SystemFact mappings_fact(const std::string& root) {
  const auto maps_max = number_in(root + "/proc/sys/vm/max_map_count");
  if (!maps_max) return {"mappings", true, "vm.max_map_count cannot be read", ""};
  const std::string detail =
      "vm.max_map_count = " + std::to_string(*maps_max) +
      ": bounds regions, and with mprotect runs of resident pages (3/4 of it at most)";
  if (*maps_max >= kMapsUsual) return {"mappings", true, detail, ""};
  return {"mappings", false, detail, "set sysctl vm.max_map_count=1048576"};
}

bool may_lock_anything(const std::string& root) {
  constexpr unsigned kIpcLock = 14;  // CAP_IPC_LOCK
  std::ifstream status(root + "/proc/self/status");
  for (std::string key, value; status >> key; std::getline(status, value))
    if (key == "CapEff:") {
      uint64_t bits = 0;
      return (status >> std::hex >> bits) && (bits >> kIpcLock & 1) != 0;
    }
  return false;
}

SystemFact locked_memory_fact(const std::string& root) {
  const std::string use = "io_uring's registered buffers";
  if (may_lock_anything(root)) return {"locked memory", true, "no limit for " + use, ""};
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return {"locked memory", true, "no limit for " + use, ""};
  const std::string detail = base::format_bytes(limit.rlim_cur) + " for " + use;
  if (limit.rlim_cur >= kLockedBytesUsual) return {"locked memory", true, detail, ""};
  return {"locked memory", false, detail + ": beyond it they are not registered",
          "raise the limit (ulimit -l 65536)"};
}

SystemFact address_space_fact(const std::string& root) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    return {"address space", false,
            "at most " + base::format_bytes(limit.rlim_cur) + ": all regions together must fit",
            "raise the limit (ulimit -v unlimited)"};
  if (::getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    return {"address space", false,
            "at most " + base::format_bytes(limit.rlim_cur) +
                " of memory of a process's own: tables and private frames must fit beside it",
            "raise the limit (ulimit -d unlimited)"};
  if (number_in(root + "/proc/sys/vm/overcommit_memory") == uint64_t{2})
    return {"address space", false,
            "vm.overcommit_memory = 2: private frames count as committed memory",
            "set sysctl vm.overcommit_memory=0"};
  return {"address space", true, "no limit", ""};
}

}  // namespace

std::vector<SystemFact> system_facts_of(const KernelFeatures& kernel, const std::string& root) {
  std::vector<SystemFact> facts = {kernel_fact(kernel)};
  add_fault_facts(kernel, &facts);
  facts.push_back(io_uring_fact(kernel));
  const std::string prefix = root == "/" ? "" : root;
  facts.push_back(memory_fact(root));
  facts.push_back(mappings_fact(prefix));
  facts.push_back(locked_memory_fact(prefix));
  facts.push_back(address_space_fact(prefix));
  return facts;
}

}  // namespace outcore::os

namespace outcore {

std::vector<SystemFact> system_facts() {
  // The mask decides what `auto` chooses, so it applies here, too. Runtime::start reports a wrong
  // mask.
  const char* mask = ::secure_getenv("OUTCORE_KERNEL");
  Result<os::KernelFeatures> kernel = os::detect_kernel_features(mask != nullptr ? mask : "");
  if (!kernel) kernel = os::detect_kernel_features("");
  return os::system_facts_of(kernel.value());
}

}  // namespace outcore
