// Settings: page size, buffer and threads of umap(), as UMap counts them, and what they are among
// the options of a runtime.
//
// Precedence: what the program sets by umapcfg_set_…, then Outcore's own option (environment or
// config file), then UMap's variable, then the default. Any thread; takes no lock, so that a store
// of the program may ask for them while it is called.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "core/runtime/config_file.h"
#include "outcore/options.h"
#include "outcore/result.h"

namespace outcore::umapped {

enum class Setting : uint8_t {
  kPageBytes,       // UMAP_PAGESIZE
  kBufferPages,     // UMAP_BUFSIZE
  kReadAheadPages,  // UMAP_READ_AHEAD
  kFillers,         // UMAP_PAGE_FILLERS
  kEvictors,        // UMAP_PAGE_EVICTORS
  kLowPercent,      // UMAP_EVICT_LOW_WATER_THRESHOLD
  kHighPercent,     // UMAP_EVICT_HIGH_WATER_THRESHOLD
  kAdaptSeconds,    // UMAP_BUFADAPT_FREQ
  kFaultEvents,     // UMAP_MAX_FAULT_EVENTS
  kCount
};

class Settings {
 public:
  // Reads UMap's variables. An impossible value is reported in one line, and the default holds, as
  // UMap's own functions for settings have no way to fail. An option of Outcore's that is wrong is
  // left for Runtime::start to report.
  Settings(const runtime::EnvironmentLookup& environment, const std::string& config_path,
           const std::function<void(const std::string& line)>& tell);
  // With the environment of the process, as it is at the first call; lines go to stderr.
  static Settings& of_process();

  uint64_t get(Setting setting) const;
  // EINVAL: the value is out of range; nothing has changed.
  Status set(Setting setting, uint64_t value);
  // Pages of the page size that fit into so many bytes.
  uint64_t pages_of(uint64_t budget_bytes) const { return budget_bytes / get(Setting::kPageBytes); }

  // For the start of a runtime. What is an option of Outcore's already stays not set.
  RuntimeOptions options() const;
  // The program or the environment says how large the buffer is, and Outcore's option does not.
  bool limits_buffer() const { return counts(Setting::kBufferPages, "budget"); }

 private:
  // Who has set it, from the weakest on.
  enum class By : uint8_t { kNobody, kVariable, kProgram };

  By by(Setting setting) const;
  // The setting holds, rather than Outcore's option of this name.
  bool counts(Setting setting, const char* option) const;
  void set_watermarks(RuntimeOptions* options) const;

  std::array<std::atomic<uint64_t>, static_cast<size_t>(Setting::kCount)> values_;
  std::array<std::atomic<By>, static_cast<size_t>(Setting::kCount)> by_;
  std::set<std::string, std::less<>> outcore_options_;  // that the environment or a file has set
  uint64_t outcore_page_bytes_ = 0;
};

}  // namespace outcore::umapped
