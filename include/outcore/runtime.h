// Runtime: a memory budget, and the regions that share it.
//
//   auto runtime = outcore::Runtime::start({.budget_bytes = 1ull << 30}).value();
//   auto region = runtime.map("big.dat", {.access = outcore::Access::kReadWrite}).value();
//   region.data()[123] = std::byte{7};
//   if (auto s = region.sync(); !s) std::fprintf(stderr, "%s\n", s.message().c_str());
//
// Several runtimes may live in one process; each has its own budget. Any thread may call any
// function, except the destructor. Move-only. The first start installs handlers for SIGBUS and
// SIGSEGV; they pass faults that are not Outcore's to the handlers that were installed before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "outcore/metrics.h"
#include "outcore/options.h"
#include "outcore/region.h"
#include "outcore/result.h"
#include "outcore/store.h"

namespace outcore {

// A range of addresses that is kept free for MapOptions::address. Unmap its regions before you
// destroy it.
class Reservation {  // REQUIRES, in the destructor: no region is left inside (asserted).
 public:
  struct Impl;  // of the library
  Reservation();
  Reservation(Reservation&&) noexcept;
  Reservation& operator=(Reservation&&) noexcept;
  ~Reservation();
  std::byte* data() const;
  uint64_t size_bytes() const;

 private:
  friend class Runtime;
  explicit Reservation(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

class Runtime {
 public:
  struct Impl;  // of the library

  // Starts a runtime. Errors: EINVAL (an option: the message says where it was set and which values
  // are valid; or a budget too small for the threads and page size: the message gives the smallest
  // that works), ENOMEM, EPERM (the delivery is not available: the message gives the remedy).
  static Result<Runtime> start(const RuntimeOptions& options = {});
  // Whether start() would accept the options, with what the environment and the config file say;
  // nothing is made. EINVAL: one is wrong, or two contradict each other; others: what keeps the
  // config file from being read.
  static Status check(const RuntimeOptions& options = {});
  // check(), and whether what the options name can be had on this machine now: a budget of a size
  // that has room for keepers and pages, a folder for scratch space, for buffers and for the
  // profile, and the pool of checkpoints, which is made if it does not exist. Options that only a
  // config file sets are for every program, and none of this is asked of them. Errors: those, with
  // the place of the option; what changes later may still fail.
  static Status check_start(const RuntimeOptions& options = {});

  Runtime(Runtime&&) noexcept;
  Runtime& operator=(Runtime&&) noexcept;
  ~Runtime();  // Ends its threads. REQUIRES: no region of it is left (asserted).

  // Opens the store that the URI names and maps it. Errors: those of open_store(); EINVAL (offset,
  // size, page size or address: the message says which values are valid); ENOMEM (no address space,
  // or a budget too small for the page size); EBUSY (the store is mapped already with another page
  // size or delivery); EACCES.
  Result<Region> map(const std::string& uri, const MapOptions& options = {});
  // The same with a store object of the caller; the region shares ownership. Two regions of one
  // store object, or of stores with equal identity(), show the same bytes and share frames.
  Result<Region> map(std::shared_ptr<Store> store, const MapOptions& options = {});

  // Makes a store shorter: what lies behind `bytes` is gone. Errors, after which nothing is: those
  // of open_store(); EINVAL (it has fewer bytes); EBUSY (it is mapped by this runtime, other than
  // privately, or others have it in the same buffer); those of Store::resize(). As with truncate(2)
  // it is for the caller to know that nobody else uses what is cut off.
  Status shorten(const std::string& uri, uint64_t bytes);

  // Reserves addresses, exactly at `address` (a multiple of 4096) if given. Errors: ENOMEM; EEXIST
  // (something is mapped there).
  Result<Reservation> reserve(uint64_t size_bytes, void* address = nullptr);
  // Reserves exactly these addresses, of which memory of the program may be mapped at some: it is
  // replaced in one step, so that nobody else gets the addresses in between. Errors, after which it
  // is as it was: EINVAL (no multiple of 4096, or no bytes), EEXIST (a region or a reservation is
  // there), ENOMEM. REQUIRES: nobody else maps or unmaps anything there meanwhile.
  Result<Reservation> reserve_over(void* address, uint64_t size_bytes);

  // Changes the budget. A smaller one evicts before the call returns. A budget that followed what
  // the machine has left (adapts_budget) stays so from then on. Errors: EBUSY (pinned pages, or
  // pages that cannot be written, were in the way, and nothing left memory for wait_ms_max; the old
  // budget stays), EINVAL (the message gives the smallest budget that works).
  Status resize_budget(uint64_t bytes);
  uint64_t budget_bytes() const;

  Metrics metrics() const;  // empty in a forked child

  // Records what the runtime does from here on: when, in which part of which file, at which place
  // in the code, and what a larger budget would have saved. A thread of its own reads events;
  // faults take about a tenth longer. Errors: EBUSY (it is recorded already, or wholly by the
  // option `report`), ENOMEM, EAGAIN (no thread).
  Status start_recording();
  // The record since start_recording(): one JSON object in one line (docs/reference/run-format.md),
  // of which `outcore report` makes a page. Errors: EINVAL (nothing is recorded), EBUSY (the option
  // `report` records the whole run).
  Result<std::string> stop_recording();
  // One line for each option: "name = value (where from)".
  std::string describe_options() const;

 private:
  friend class Region;
  explicit Runtime(std::shared_ptr<Impl>);
  std::shared_ptr<Impl> impl_;
};

// Something that the kernel or this process offers or lacks: what `auto` chooses because of it, and
// the remedy if it is missing.
struct SystemFact {
  std::string name;  // "in-thread faults", "write tracking", …
  bool is_available;
  std::string detail;  // what it is used for, or why it is missing
  std::string remedy;  // empty if available or if there is none
};
std::vector<SystemFact> system_facts();
// The default budget of a runtime on this machine, and why: "half of 3.8 GiB available in cgroup
// /x".
std::pair<uint64_t, std::string> default_budget();

const char* version();

}  // namespace outcore
