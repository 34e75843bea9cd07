#include "run/preload/settings.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/base/units.h"
#include "run/preload/go_program.h"

namespace outcore::preload {
namespace {

std::vector<std::string> lines_of(const char* text) {
  std::vector<std::string> lines;
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (end != 0) lines.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

bool is_set(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != 0 && std::string_view(text) != "0";
}

void read_bytes(const char* name, uint64_t* into, std::string* complaint) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == 0) return;
  if (Result<uint64_t> bytes = base::parse_bytes(text); bytes)
    *into = bytes.value();
  else if (complaint->empty())
    *complaint = std::string(name) + "=" + text + ": " + bytes.message();
}

uint64_t number_of(const char* text) {
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

Settings read_settings() {
  Settings s;
  s.map = lines_of(std::getenv("OUTCORE_RUN_MAP"));
  s.not_map = lines_of(std::getenv("OUTCORE_RUN_NOT_MAP"));
  read_bytes("OUTCORE_RUN_MIN_SIZE", &s.min_bytes, &s.complaint);
  read_bytes("OUTCORE_RUN_ALLOC", &s.alloc_bytes, &s.complaint);
  s.is_go = is_go_program();
  if (s.is_go) s.alloc_bytes = 0;
  if (const char* store = std::getenv("OUTCORE_STORE"); store != nullptr && *store != 0)
    s.store = store;
  s.allows_aio = is_set("OUTCORE_RUN_ALLOW_AIO");
  s.shares_writes = is_set("OUTCORE_RUN_SHARE_WRITES") && !s.is_go;
  s.is_explaining = is_set("OUTCORE_RUN_EXPLAIN");
  s.is_quiet = is_set("OUTCORE_RUN_QUIET");
  if (const char* json = std::getenv("OUTCORE_RUN_JSON")) s.json = json;
  if (const uint64_t seconds = number_of(std::getenv("OUTCORE_RUN_PATIENCE")); seconds != 0)
    s.patience_s = seconds;
  s.command = lines_of(std::getenv("OUTCORE_RUN_COMMAND"));
  if (const char* buffer = std::getenv("OUTCORE_RUN_BUFFER")) s.buffer = buffer;
  s.root = static_cast<pid_t>(number_of(std::getenv("OUTCORE_RUN_ROOT")));
  if (const char* report = std::getenv("OUTCORE_RUN_REPORT")) {  // PID:DESCRIPTOR
    const char* colon = report;
    while (*colon != 0 && *colon != ':') ++colon;
    if (*colon == ':') {
      s.report_fd = static_cast<int>(number_of(colon + 1));
      s.report = "/proc/" + std::to_string(number_of(report)) + "/fd/" +
                 std::to_string(number_of(colon + 1));
    }
  }
  return s;
}

bool matches(const std::vector<std::string>& globs, const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
    return ::fnmatch(glob.c_str(), path.c_str(), 0) == 0 ||
           ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
  });
}

}  // namespace

bool Settings::is_named(const std::string& path) const { return matches(map, path); }
bool Settings::is_excluded(const std::string& path) const { return matches(not_map, path); }

const Settings& settings() {
  static const Settings* const read = new Settings(read_settings());  // used until the process ends
  return *read;
}

}  // namespace outcore::preload
