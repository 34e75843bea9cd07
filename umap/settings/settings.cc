#include "umap/settings/settings.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/runtime/resolved_options.h"

namespace outcore::umapped {
namespace {

constexpr uint64_t kThreadsMax = 256;  // of one kind that a runtime may have
// A budget of Outcore's is less than 16 TiB.
constexpr uint64_t kBudgetBytesMax = uint64_t{15} << 40;
constexpr uint64_t kReadAheadBytesMax = uint64_t{1} << 30;

struct Row {
  const char* variable;
  const char* what;
  uint64_t usual;  // 0: the number of processors, or what Outcore chooses
  uint64_t min, max;
};

// In the order of Setting. UMap takes 0 for "not set", except where 0 has a meaning.
constexpr Row kRows[] = {
    {"UMAP_PAGESIZE", "a power of two, from 4096 to 16777216", base::kSystemPage, base::kSystemPage,
     base::kPageBytesMax},
    {"UMAP_BUFSIZE", "a number of pages", 0, 1, uint64_t{1} << 40},
    {"UMAP_READ_AHEAD", "a number of pages", 0, 0, uint64_t{1} << 40},
    {"UMAP_PAGE_FILLERS", "a number of threads", 0, 1, uint64_t{1} << 20},
    {"UMAP_PAGE_EVICTORS", "a number of threads", 0, 1, uint64_t{1} << 20},
    {"UMAP_EVICT_LOW_WATER_THRESHOLD", "a percentage, from 1 to 100", 70, 1, 100},
    {"UMAP_EVICT_HIGH_WATER_THRESHOLD", "a percentage, from 1 to 100", 90, 1, 100},
    {"UMAP_BUFADAPT_FREQ", "a number of seconds", 3, 1, uint64_t{1} << 30},
    {"UMAP_MAX_FAULT_EVENTS", "a number of events", 256, 1, uint64_t{1} << 30},
};
static_assert(std::size(kRows) == static_cast<size_t>(Setting::kCount));

const Row& row_of(Setting setting) {
  OC_CHECK(setting < Setting::kCount);
  return kRows[static_cast<size_t>(setting)];
}

bool is_valid(Setting setting, uint64_t value) {
  const Row& row = row_of(setting);
  if (value < row.min || value > row.max) return false;
  return setting != Setting::kPageBytes || base::is_power_of_two(value);
}

// False: it is not a number, or one that 64 bits do not hold.
bool parse(std::string_view text, uint64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

unsigned threads_of(uint64_t value) {
  OC_CHECK(value >= 1);
  return static_cast<unsigned>(std::min(value, kThreadsMax));
}

}  // namespace

Settings::Settings(const runtime::EnvironmentLookup& environment, const std::string& config_path,
                   const std::function<void(const std::string& line)>& tell)
    : values_{}, by_{} {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    const Row& row = kRows[i];
    const auto setting = static_cast<Setting>(i);
    const char* text = environment(row.variable);
    uint64_t value = 0;
    if (text == nullptr || *text == 0) continue;
    const bool is_number = parse(text, &value);
    if (is_number && value == 0 && row.min != 0) continue;
    if (is_number && is_valid(setting, value)) {
      values_[i] = value;
      by_[i] = By::kVariable;
    } else {
      tell(std::string(row.variable) + "=" + text + ": it is " + row.what +
           "; the default is used");
    }
  }
  const auto resolved = runtime::resolve_options({}, environment, config_path);
  if (!resolved) return;
  for (const auto& [name, place] : resolved->places)
    if (place != runtime::OptionPlace::kDefault) outcore_options_.insert(name);
  outcore_page_bytes_ = resolved->page_bytes;
}

Settings& Settings::of_process() {
  const auto environment = [](const char* name) { return std::getenv(name); };
  // Never deleted: threads may use it until the process ends.
  static Settings* const settings = new Settings(
      environment, runtime::find_config_file(environment),
      [](const std::string& line) { std::fprintf(stderr, "outcore: %s\n", line.c_str()); });
  return *settings;
}

Settings::By Settings::by(Setting setting) const {
  OC_CHECK(setting < Setting::kCount);
  return by_[static_cast<size_t>(setting)].load(std::memory_order_acquire);
}

bool Settings::counts(Setting setting, const char* option) const {
  if (by(setting) == By::kProgram) return true;
  return by(setting) == By::kVariable && !outcore_options_.contains(option);
}

uint64_t Settings::get(Setting setting) const {
  const uint64_t value = values_[static_cast<size_t>(setting)].load(std::memory_order_relaxed);
  if (setting == Setting::kPageBytes && !counts(setting, "page") &&
      outcore_options_.contains("page"))
    return outcore_page_bytes_;
  if (by(setting) != By::kNobody) return value;
  if (setting == Setting::kFillers || setting == Setting::kEvictors)
    return std::max(1U, std::thread::hardware_concurrency());
  return row_of(setting).usual;
}

Status Settings::set(Setting setting, uint64_t value) {
  const Row& row = row_of(setting);
  if (!is_valid(setting, value))
    return Error{EINVAL, "set " + std::string(row.variable).substr(5) + " to " +
                             std::to_string(value) + ": it is " + row.what + "; nothing changes"};
  values_[static_cast<size_t>(setting)].store(value, std::memory_order_relaxed);
  by_[static_cast<size_t>(setting)].store(By::kProgram, std::memory_order_release);
  return {};
}

RuntimeOptions Settings::options() const {
  const uint64_t page_bytes = get(Setting::kPageBytes);
  OC_CHECK(base::is_power_of_two(page_bytes));
  const auto bytes_of = [&](Setting setting, uint64_t bytes_max) {
    return std::min(get(setting), bytes_max / page_bytes) * page_bytes;
  };
  RuntimeOptions options;
  options.page_bytes = page_bytes;
  if (limits_buffer())
    options.budget_bytes = bytes_of(Setting::kBufferPages, kBudgetBytesMax);
  else
    options.adapts_budget = counts(Setting::kAdaptSeconds, "budget");
  if (counts(Setting::kReadAheadPages, "readahead"))
    options.readahead_bytes = bytes_of(Setting::kReadAheadPages, kReadAheadBytesMax);
  // UMap's fillers answer faults as well as hints; here these are threads of two kinds.
  if (counts(Setting::kFillers, "prefetch_threads"))
    options.prefetch_threads = threads_of(get(Setting::kFillers));
  if (counts(Setting::kFillers, "event_threads"))
    options.event_threads = threads_of(get(Setting::kFillers));
  if (counts(Setting::kEvictors, "keepers")) options.keepers = threads_of(get(Setting::kEvictors));
  set_watermarks(&options);
  return options;
}

// Both or none: one of UMap's beside Outcore's default of the other would seldom fit.
void Settings::set_watermarks(RuntimeOptions* options) const {
  if (!counts(Setting::kLowPercent, "low_watermark") &&
      !counts(Setting::kHighPercent, "high_watermark"))
    return;
  const bool by_program =
      by(Setting::kLowPercent) == By::kProgram || by(Setting::kHighPercent) == By::kProgram;
  if (!by_program &&
      (outcore_options_.contains("low_watermark") || outcore_options_.contains("high_watermark")))
    return;
  if (get(Setting::kLowPercent) >= get(Setting::kHighPercent)) {
    std::fprintf(stderr,
                 "outcore: UMap's evict thresholds of %lu %% (low) and %lu %% (high) do not go "
                 "together: the "
                 "defaults are taken; set both, the low one below the high one\n",
                 static_cast<unsigned long>(get(Setting::kLowPercent)),
                 static_cast<unsigned long>(get(Setting::kHighPercent)));
    return;
  }
  options->low_watermark = static_cast<unsigned>(get(Setting::kLowPercent));
  options->high_watermark = static_cast<unsigned>(get(Setting::kHighPercent));
}

}  // namespace outcore::umapped
