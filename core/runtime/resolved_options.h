// Resolved options: every option of a runtime with its value, and where it was set.
//
// Precedence: the program, then the environment, then the config file, then the default. A value
// that is out of range is an error even if another value takes precedence, because whoever wrote it
// meant it. Any thread; not on the fault path.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/os/memory_limit.h"
#include "core/runtime/config_file.h"
#include "outcore/options.h"
#include "outcore/result.h"

namespace outcore::runtime {

// Where a value was set; what comes later wins.
enum class OptionPlace : uint8_t { kDefault, kConfigFile, kEnvironment, kProgram };

struct ResolvedOptions {
  static constexpr uint64_t kNoBound = UINT64_MAX;

  uint64_t budget_bytes = 0;      // with adapts_budget: what it begins with
  bool adapts_budget = false;     // budget = auto
  bool has_sized_budget = false;  // the budget was given in bytes, not in percent or by default
  uint64_t budget_min_bytes = 0, budget_max_bytes = kNoBound;  // with adapts_budget alone
  std::string policy;
  uint64_t page_bytes = 0;
  unsigned keepers = 0;
  unsigned prefetch_threads = 0;
  unsigned event_threads = 0;
  unsigned event_batch = 0;
  unsigned high_watermark = 0;
  unsigned low_watermark = 0;
  uint64_t readahead_bytes = 0;
  Fetch fetch = Fetch::kAuto;
  uint64_t wait_ms_max = 0;
  Delivery delivery = Delivery::kAuto;
  FrameKind frames = FrameKind::kAuto;
  OnError on_error = OnError::kSignal;
  std::string scratch_dir;
  uint64_t checkpoint_every_ms = 0;
  std::string checkpoint_pool;
  unsigned checkpoint_keep = 0;
  std::string learn_file;
  std::string buffer;
  std::string report_file;
  std::string metrics_at_exit;
  std::string kernel;

  // Where the option of this name (as in the option table: "budget") was set: "the program",
  // "OUTCORE_BUDGET", "/etc/outcore.toml:3", "default". REQUIRES: the name is in the table.
  std::string source_of(std::string_view name) const;
  // One line for each option: "name = value (where from)".
  std::string describe() const;
  // The most that the budget can become if nobody resizes it, as far as that is known.
  uint64_t largest_budget() const {
    return adapts_budget && budget_max_bytes != kNoBound ? budget_max_bytes : budget_bytes;
  }

  std::map<std::string, std::string, std::less<>> sources;  // by name
  std::map<std::string, OptionPlace, std::less<>> places;   // likewise
};

// Resolves `options` with this environment and config file (empty: none). With `ignore_environment`
// neither is read, except TMPDIR. Unknown variables that begin with OUTCORE_ are ignored; an
// unknown name in the config file is an error. `available` is the memory of which the default
// budget and percentages are computed. Errors: EINVAL, and those of read_config_file; the message
// begins with the place.
Result<ResolvedOptions> resolve_options(
    const RuntimeOptions& options, const EnvironmentLookup& environment,
    const std::string& config_path,
    const std::function<os::MemoryAvailable()>& available = [] { return os::memory_available(); });

// The same with the process's own environment and the config file that it names.
Result<ResolvedOptions> resolve_options(const RuntimeOptions& options);

}  // namespace outcore::runtime
