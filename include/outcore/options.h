// Options: what a runtime and a region may be told. Every one has a default that is meant to be
// kept.
//
// Precedence: what the program sets here, then the environment (OUTCORE_BUDGET=4G), then the config
// file (OUTCORE_CONFIG, else ~/.config/outcore.toml, else /etc/outcore.toml), then the default. The
// table of names, units and defaults is docs/reference/options.md, made from the same source as the
// parser (core/runtime/option_table.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace outcore {

enum class Access : uint8_t {
  kReadOnly,   // a write raises SIGSEGV, as with mmap
  kReadWrite,  // changes reach the store by write-back, flush and unmap
  kPrivate,    // changes are this region's own and never reach the store; evicted ones rest in
               // scratch
};

// How the runtime learns of a fault.
enum class Delivery : uint8_t {
  kAuto,
  kInThread,  // userfaultfd, SIGBUS mode: the faulting thread fills. A system call on an absent
              // page: EFAULT
  kMessages,  // userfaultfd, event threads fill. A system call on an absent page works
  kMprotect,  // SIGSEGV and mprotect, where userfaultfd is blocked. A system call on an absent
              // page: EFAULT
};

// What holds a resident page.
enum class FrameKind : uint8_t {
  kAuto,
  kShared,   // a memfd: the kernel tracks writes at 4 KiB without faults (Linux 6.7), views share
             // frames
  kPrivate,  // anonymous memory: the cheapest fill; writes are tracked by faults
};

// What a touch gets whose fill failed.
enum class OnError : uint8_t {
  kSignal,    // SIGBUS with the address, as with mmap; the program's own handler is called
  kZeroFill,  // zeros, and the region is marked degraded. Only of regions that nobody writes: map()
              // refuses it with write access, and as a runtime's default it is kSignal there
  kAbort,     // the program ends with a message
};

enum class Advice : uint8_t {
  kNormal,      // readahead on
  kRandom,      // readahead off
  kSequential,  // readahead starts at its largest window
  kWillNeed,    // prefetch the range
  kDontNeed,    // evict the range now; dirty bytes are written back first
  kCold,        // the range is the first to leave
};

struct RuntimeOptions {
  // Bytes of memory for resident pages, pages in flight and bounce buffers together; a hard limit.
  // Default: half of what the machine or the process's cgroup has available.
  std::optional<uint64_t> budget_bytes{};
  // A name, with parameters or without (docs/reference/policies.md): default "s3-fifo".
  std::optional<std::string> policy{};
  std::optional<uint64_t> page_bytes{};        // of regions that do not say: default 4 KiB
  std::optional<unsigned> keepers{};           // shards, each with a thread that evicts: default 1
  std::optional<unsigned> prefetch_threads{};  // default 2
  std::optional<unsigned>
      event_threads;  // for messages delivery, started with its first region: default 2
  std::optional<unsigned>
      high_watermark;  // percent of the budget: above it keepers evict. Default 98
  std::optional<unsigned> low_watermark{};  // percent of the budget: down to it. Default 97
  std::optional<uint64_t>
      readahead_bytes;  // largest window of a sequential reader; 0: none. Default 2 MiB
  // Bound of a wait for memory that cannot be freed; 0: do not wait, fail at once. Default 30 s.
  std::optional<uint64_t> wait_ms_max;
  std::optional<Delivery> delivery{};        // of regions that do not say: default auto
  std::optional<FrameKind> frames{};         // of regions that do not say: default auto
  std::optional<OnError> on_error{};         // of regions that do not say: default signal
  std::optional<std::string> scratch_dir{};  // default: TMPDIR, else /var/tmp
  // A checkpoint of all that the runtime has mapped for writing, every so often (0: none), in the
  // pool versioned:FOLDER, or in that of its regions ("none", the default); the last so many are
  // kept (3). Of a store that is not of the pool a copy is kept. What cannot be held is said on
  // stderr.
  std::optional<uint64_t> checkpoint_every_ms{};
  std::optional<std::string> checkpoint_pool{};
  std::optional<unsigned> checkpoint_keep{};
  std::optional<std::string>
      metrics_at_exit;  // "none" (default), "text" (stderr), or a path for lines of JSON
  std::optional<std::string>
      kernel{};                     // mask kernel features newer than "5.15", "6.1", "6.8"; "all"
  bool ignore_environment = false;  // also ignores config files: for tests and nested libraries
};

struct MapOptions {
  Access access = Access::kReadOnly;
  uint64_t offset = 0;      // first byte of the store to map; a multiple of 4096
  uint64_t size_bytes = 0;  // 0: to the end of the store
  bool may_create = false;  // create the store, or make it larger, so that offset + size_bytes fit
  uint64_t page_bytes =
      0;  // unit of fault, eviction and I/O: a power of two, 4 KiB … 16 MiB. 0: the runtime's
  uint64_t reserve_bytes = 0;  // address space kept for grow(); at least size_bytes. 0: size_bytes
  void* address = nullptr;     // inside a Reservation of this runtime; nullptr: Outcore chooses
  Advice advice = Advice::kNormal;
  std::optional<Delivery> delivery{};
  std::optional<FrameKind> frames{};
  std::optional<OnError> on_error{};
};

// Prints a line on the standard error for each variable OUTCORE_… of the environment that nobody
// reads, with the one that was perhaps meant; once a process. Runtime::start does so by itself.
void tell_unknown_variables();
// The name nearest to a word that is none; empty if none is near. For messages: "did you mean …?".
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace outcore
