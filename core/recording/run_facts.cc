#include "core/recording/run_facts.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/next_run.h"
#include "core/base/units.h"
#include "core/os/file_calls.h"

namespace outcore::recording {
namespace {

using base::Json;

constexpr size_t kCommandBytesMax = 4096;

// Of this program; none if they are too many to be told.
Json arguments() {
  const std::string text = os::read_file("/proc/self/cmdline", kCommandBytesMax);
  if (text.size() == kCommandBytesMax) return Json();
  Json words = Json::array();
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string command_of(const Json& words) {
  std::string text;
  for (const Json& word : words)
    text += (text.empty() ? "" : " ") + word.as<std::string>().value_or("");
  return text.empty() ? "a program of many arguments" : text;
}

}  // namespace

std::string time_text(uint64_t since_1970_ns) {
  const auto seconds = static_cast<time_t>(since_1970_ns / 1'000'000'000);
  struct tm parts {};
  char text[32] = "";
  if (::gmtime_r(&seconds, &parts) != nullptr)
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Json program_facts(uint64_t started_since_1970_ns, Json run_command) {
  const Json words = arguments();
  return {{"command", command_of(words)},
          {"arguments", words},
          {"run_command", std::move(run_command)},
          {"pid", static_cast<int64_t>(::getpid())},
          {"started", time_text(started_since_1970_ns)}};
}

Json run_command_facts() {
  const char* const text = std::getenv(base::kRunCommandVariable);
  if (text == nullptr || *text == 0) return Json();
  Json lines = Json::array();
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (end != 0) lines.push_back(std::string(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return lines;
}

Json environment_facts() {
  Json json;
  utsname system{};
  const bool is_known = ::uname(&system) == 0;
  json["outcore"] = OUTCORE_VERSION;
  json["kernel"] = is_known ? system.release : "";
  json["host"] = is_known ? system.nodename : "";
  json["processors"] = static_cast<int64_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  json["memory_bytes"] =
      static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES))) * base::kSystemPage;
  return json;
}

Json left_files_json(const published::Layout& seen) {
  Json list = Json::array();
  const uint32_t count = std::min(seen.left_files_used.load(), published::Layout::kLeftFiles);
  for (uint32_t i = 0; i < count; ++i)
    list.push_back(Json{{"path", seen.left_files[i].path.get()},
                        {"size_bytes", seen.left_files[i].size_bytes.load()},
                        {"reason", seen.left_files[i].reason.get()}});
  return list;
}

}  // namespace outcore::recording
