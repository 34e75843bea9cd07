// Options: the options of a runtime and of a region. Each has a default that suits most programs.
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

// How the runtime is notified of a fault.
enum class Delivery : uint8_t {
  kAuto,
  // userfaultfd in SIGBUS mode: the faulting thread fills. A system call on an absent page fails
  // with EFAULT.
  kInThread,
  kMessages,  // userfaultfd; event threads fill. A system call on an absent page works.
  // SIGSEGV and mprotect, where userfaultfd is not allowed. A system call on an absent page fails
  // with EFAULT.
  kMprotect,
};

// How much a miss brings in, if it belongs to no sequential reader.
enum class Fetch : uint8_t {
  kAuto,  // as much around the page as has paid so far, for this place in the data and in the code
  kPage,  // the page alone
};

// The kind of memory that holds a resident page.
enum class FrameKind : uint8_t {
  kAuto,
  // A memfd: the kernel tracks writes at 4 KiB without faults (Linux 6.7), and views share frames.
  kShared,
  kPrivate,  // anonymous memory: the cheapest fill; writes are tracked by faults
};

// What happens to an access whose fill failed.
enum class OnError : uint8_t {
  kSignal,  // SIGBUS with the address, as with mmap; a handler of the program is called
  // The page reads zero, and the region is marked degraded. For read-only regions only: map()
  // refuses it with write access; as a default of the runtime it means kSignal for writable
  // regions.
  kZeroFill,
  kAbort,  // the program ends with a message
};

enum class Advice : uint8_t {
  kNormal,      // readahead on
  kRandom,      // readahead off
  kSequential,  // readahead starts at its largest window
  kWillNeed,    // prefetch the range
  kDontNeed,    // evict the range now; dirty bytes are written back first
  kCold,        // evict the range before other pages
};

struct RuntimeOptions {
  // Bytes of memory for resident pages, pages in flight and bounce buffers together. A hard limit.
  // Default: half of the memory that is available to the machine or the process's cgroup.
  std::optional<uint64_t> budget_bytes{};
  // The budget follows what the machine and the cgroups have left ("auto" in the environment): it
  // shrinks while others take memory, and grows back. budget_bytes, or its default, is where it
  // begins; resize_budget() ends it.
  bool adapts_budget = false;
  // Bounds of such a budget. Default: 16 MiB, or budget_max_bytes if that is less; and none, but a
  // margin that is always left to others.
  std::optional<uint64_t> budget_min_bytes{};
  std::optional<uint64_t> budget_max_bytes{};
  // A policy, with or without parameters (docs/reference/policies.md). Default "auto".
  std::optional<std::string> policy{};
  std::optional<uint64_t> page_bytes{};        // default for regions: 4 KiB
  std::optional<unsigned> keepers{};           // shards, each with a thread that evicts. Default 1
  std::optional<unsigned> prefetch_threads{};  // default 2
  // Threads for message delivery, started with the first region that uses it. Default 2.
  std::optional<unsigned> event_threads;
  // Messages of faults that one of them takes at a time, if so many wait; 64 at most. Default 8.
  std::optional<unsigned> event_batch{};
  // Percent of the budget above which keepers evict. Default 98.
  std::optional<unsigned> high_watermark;
  // Percent of the budget down to which they evict. Default 97.
  std::optional<unsigned> low_watermark{};
  // Largest readahead window of a sequential reader; 0: no readahead. Default 2 MiB.
  std::optional<uint64_t> readahead_bytes;
  // Default: auto. readahead_bytes = 0 and the advice "random" switch it off, too: then nothing
  // comes in that was not asked for.
  std::optional<Fetch> fetch{};
  // How long to wait for memory that cannot be freed before failing; 0: fail at once. Default 30 s.
  std::optional<uint64_t> wait_ms_max;
  std::optional<Delivery> delivery{};        // default for regions: auto
  std::optional<FrameKind> frames{};         // default for regions: auto
  std::optional<OnError> on_error{};         // default for regions: signal
  std::optional<std::string> scratch_dir{};  // default: TMPDIR, else /var/tmp
  // Periodic checkpoints of everything that the runtime has mapped for writing: the interval (0,
  // the default: none); the pool versioned:FOLDER that keeps them ("none", the default: the pool of
  // the regions); how many are kept (default 3). Stores outside the pool are copied into it. What
  // cannot be kept is reported on stderr.
  std::optional<uint64_t> checkpoint_every_ms{};
  std::optional<std::string> checkpoint_pool{};
  std::optional<unsigned> checkpoint_keep{};
  // A file that keeps what of which files was needed first, and in which order; the next start
  // brings that in ahead (docs/guides/run.md). "none" (default): nothing is kept. It is written
  // when the runtime ends, or the process by exit().
  std::optional<std::string> learn_file{};
  // The name of a buffer (outcore/buffers.h): pages of files are shared with all processes that
  // name it, those that write them, too, and the budget of the first is the limit for all of them
  // together. "none" (default): each process for itself. Regions with pages other than 4 KiB, with
  // room to grow, access = private, mprotect delivery, private frames or on_error = zero stay the
  // process's own.
  std::optional<std::string> buffer{};
  // A file to which a record of the run is appended, one line of JSON, when the runtime ends, or
  // the process by exit(): what happened when, in which part of which file and at which place of
  // the code, and what a larger budget would have saved. `outcore report` makes a page of it.
  // "none" (default): nothing is recorded.
  std::optional<std::string> report_file{};
  // "none" (default), "text" (to stderr), or a path to which lines of JSON are appended.
  std::optional<std::string> metrics_at_exit;
  // Pretend to run on an older kernel: "5.15", "6.1", "6.8"; "all" uses every feature.
  std::optional<std::string> kernel{};
  bool ignore_environment = false;  // also ignores config files; for tests and nested libraries
};

struct MapOptions {
  Access access = Access::kReadOnly;
  uint64_t offset = 0;      // first byte of the store; a multiple of 4096
  uint64_t size_bytes = 0;  // 0: to the end of the store
  bool may_create = false;  // create the store, or enlarge it to offset + size_bytes
  // Unit of fault, eviction and I/O: a power of two, 4 KiB … 16 MiB. 0: the runtime's default.
  uint64_t page_bytes = 0;
  uint64_t reserve_bytes = 0;  // addresses kept for grow(), at least size_bytes. 0: size_bytes
  void* address = nullptr;     // inside a Reservation of this runtime; nullptr: Outcore chooses
  Advice advice = Advice::kNormal;
  std::optional<Delivery> delivery{};
  std::optional<FrameKind> frames{};
  std::optional<OnError> on_error{};
};

// Prints a line on stderr for each environment variable OUTCORE_… that nobody reads, with the name
// that was probably meant; once per process. Runtime::start calls it.
void tell_unknown_variables();
// The name most similar to `word`, for messages ("did you mean …?"); empty if none is similar.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace outcore
