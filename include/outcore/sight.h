// Sight: what runtimes of other processes have counted, read while they run.
//
// Every runtime keeps its counters in memory that processes of the same user (and root) may read.
// That costs the observed process nothing, and it is not asked: it may hang, or be stopped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "outcore/metrics.h"
#include "outcore/result.h"

namespace outcore {

// A file whose mappings are the kernel's, though `outcore run` was asked to take them.
struct LeftFile {
  std::string path, reason;  // "handed back: …" if it had been taken
  uint64_t size_bytes = 0;   // of the mapping
};

// Where a store is mapped in its process.
struct StorePlaces {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // addresses: start and end, in their order
  bool are_all = true;  // no: it is mapped more often than is published (16 times)
};

// One runtime of a process.
struct PublishedRuntime {
  pid_t process = 0;
  std::string version;        // of its library
  uint64_t started_ns = 0;    // since 1970
  std::string policy;         // as the option has it
  std::string policy_now;     // of auto: the one that it has taken (of several keepers, the first)
  std::string budget_source;  // where the budget comes from: "OUTCORE_BUDGET", "default", …
  std::string shared_buffer;  // the name of the buffer that it shares; empty: none
  std::vector<LeftFile> left_files;  // the first 8
  // `regions` has one entry for each store, of the store's whole size, without an address;
  // resident_bytes of a store whose pages a buffer shares is 0, as they are the buffer's. The first
  // 512 stores have entries; what others count is counted when they end. `policies` is empty, and
  // metadata_bytes, replays and budget_shrink_ns_max are 0.
  Metrics metrics;
  std::vector<StorePlaces> places;  // of each of metrics.regions
};

// A process whose library has other counters, so that nothing of them can be read.
struct OtherLibrary {
  pid_t process = 0;
  std::string version;
};

// Processes with a runtime that this process may look at, in order of their numbers. Processes that
// end meanwhile are left out, as are those of other users. Those with another version of the layout
// come to `others`, if it is not nullptr.
std::vector<pid_t> list_published(std::vector<OtherLibrary>* others = nullptr);

// The runtimes of a process, the oldest first. Errors: ESRCH (no such process), EACCES (another
// user's, or not dumpable), ENOENT (it has no runtime), EPROTO (its library has another version,
// and no runtime of it this one).
Result<std::vector<PublishedRuntime>> look_at(pid_t process);

// The places of all their stores, one runtime after the other.
std::vector<StorePlaces> places_of(std::span<const PublishedRuntime> runtimes);

struct DirtyBytes {
  uint64_t all = 0;  // of the process
  std::vector<std::optional<uint64_t>>
      each;  // of what was asked for; none: not all places are known
};
// How much a process has written that is in no store yet, of all that its runtimes map for writing
// and may write, and of that, of each of `stores`; of a buffer, what this process may write. Nobody
// counts it: the kernel is asked, which takes a millisecond or so for each GiB that is in memory. A
// page that is written through several mappings of its store counts in each. Errors: ESRCH, EACCES;
// ENOTSUP (the kernel cannot tell: before 6.7); ENOENT (there is nothing of which it could).
Result<DirtyBytes> dirty_bytes(pid_t process, std::span<const StorePlaces> stores = {});

// For who wants to know what a process had counted when it ended: descriptors of what its runtimes
// publish now, which the caller closes. None: it has no runtime, or look_at() would fail.
std::vector<int> keep_published(pid_t process);
// Errors: EINVAL (the descriptor is not one of keep_published()).
Result<PublishedRuntime> look_at_kept(int descriptor);

}  // namespace outcore
