// Runtime: a memory budget, and the regions that share it.
//
//   auto runtime = outcore::Runtime::start({.budget_bytes = 1ull << 30}).value();
//   auto region = runtime.map("big.dat", {.access = outcore::Access::kReadWrite}).value();
//   region.data()[123] = std::byte{7};
//   if (auto s = region.sync(); !s) std::fprintf(stderr, "%s\n", s.message().c_str());
//
// Several runtimes may live in one process; each has its own buffer. Any thread may call anything,
// but for destruction. Move-only. The first start installs handlers for SIGBUS and SIGSEGV, which
// pass on faults that are not Outcore's to the handlers found there.
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

// A range of addresses that is kept free, for MapOptions::address. Unmap its regions before it
// ends.
class Reservation {  // REQUIRES, at its end: no region inside is left (asserted)
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

  // Errors: EINVAL (an option, with where it was set and what would do; a budget too small for the
  // threads and page size, with the least that would do), ENOMEM, EPERM (delivery asked for is not
  // to be had, and the remedy).
  static Result<Runtime> start(const RuntimeOptions& options = {});

  Runtime(Runtime&&) noexcept;
  Runtime& operator=(Runtime&&) noexcept;
  ~Runtime();  // REQUIRES: no region of it is left (asserted). Ends its threads.

  // Maps a store that is opened for it. Errors: as open_store; EINVAL (offset, size, page size,
  // address: what would do); ENOMEM (address space; budget too small for the page size); EBUSY
  // (store mapped already with another page size or delivery); EACCES.
  Result<Region> map(const std::string& uri, const MapOptions& options = {});
  // The same with a store object of the caller's. The region shares ownership. Two regions of one
  // store object, or of stores with equal identity(), show the same bytes and share frames.
  Result<Region> map(std::shared_ptr<Store> store, const MapOptions& options = {});

  // With `address` (a multiple of 4096) exactly there. Errors: ENOMEM; EEXIST (something is there).
  Result<Reservation> reserve(uint64_t size_bytes, void* address = nullptr);

  // Changes the budget; smaller evicts before it returns. Errors: EBUSY (pinned or unwritable pages
  // are in the way after the bound of waits; the old budget stays), EINVAL (the least that would
  // do).
  Status resize_budget(uint64_t bytes);
  uint64_t budget_bytes() const;

  Metrics metrics() const;  // empty in a forked child
  // "name = value (where from)" of every option, one a line.
  std::string describe_options() const;

 private:
  friend class Region;
  explicit Runtime(std::shared_ptr<Impl>);
  std::shared_ptr<Impl> impl_;
};

// What the kernel and this process offer, what `auto` would choose and why, and the remedy for what
// is missing.
struct SystemFact {
  std::string name;  // "in-thread faults", "write tracking", …
  bool is_available;
  std::string detail;  // what it is used for, or why it is missing
  std::string remedy;  // empty if available or if there is none
};
std::vector<SystemFact> system_facts();
// The budget that a runtime gets by default here, and why: "half of 3.8 GiB available in cgroup
// /x".
std::pair<uint64_t, std::string> default_budget();

const char* version();

}  // namespace outcore
