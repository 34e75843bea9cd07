// Resolved options: every option of a runtime with its value, and where it was set.
//
// Precedence: the program, then the environment, then the config file, then the default. A value
// that is out of range is an error wherever it stands, also where a higher place has another: what
// is written somewhere is meant. Any thread; not on the fault path.
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

struct ResolvedOptions {
  uint64_t budget_bytes = 0;
  std::string policy;
  uint64_t page_bytes = 0;
  unsigned keepers = 0;
  unsigned prefetch_threads = 0;
  unsigned event_threads = 0;
  unsigned high_watermark = 0;
  unsigned low_watermark = 0;
  uint64_t readahead_bytes = 0;
  uint64_t wait_ms_max = 0;
  Delivery delivery = Delivery::kAuto;
  FrameKind frames = FrameKind::kAuto;
  OnError on_error = OnError::kSignal;
  std::string scratch_dir;
  uint64_t checkpoint_every_ms = 0;
  std::string checkpoint_pool;
  unsigned checkpoint_keep = 0;
  std::string metrics_at_exit;
  std::string kernel;

  // Where the option of this name (of the option table: "budget") was set: "the program",
  // "OUTCORE_BUDGET",
  // "/etc/outcore.toml:3", "default". REQUIRES: it is in the table.
  std::string source_of(std::string_view name) const;
  // "name = value (where from)" of every option, one a line.
  std::string describe() const;

  std::map<std::string, std::string, std::less<>> sources;  // by name
};

// Resolves `options` against this environment and config file (empty: none); neither is read, but
// for TMPDIR, if `ignore_environment` says so. Unknown variables that begin with OUTCORE_ are left
// alone; an unknown name in the config file is an error.
// `available` is what a percentage and the default of the budget are of.
// Errors: EINVAL, and those of read_config_file; the message begins with the place.
Result<ResolvedOptions> resolve_options(
    const RuntimeOptions& options, const EnvironmentLookup& environment,
    const std::string& config_path,
    const std::function<os::MemoryAvailable()>& available = [] { return os::memory_available(); });

// The same against the process's own environment and the config file that it names.
Result<ResolvedOptions> resolve_options(const RuntimeOptions& options);

}  // namespace outcore::runtime
