#include "core/runtime/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "core/base/error.h"
#include "core/os/descriptor_place.h"
#include "core/os/written_pipe.h"

namespace outcore::runtime {
namespace {

constexpr size_t kFileBytesMax = size_t{1} << 20;

std::string place_of(const std::string& path, const toml::source_region& source) {
  return path + ":" + std::to_string(source.begin.line);
}

// Reads a key and its value. Fractions are refused, because 6.10 would become 6.1.
Result<ConfigEntry> read_entry(const std::string& path, const toml::key& key,
                               const toml::node& node) {
  ConfigEntry entry{std::string(key.str()), {}, place_of(path, node.source())};
  if (const auto* text = node.as_string())
    entry.text = text->get();
  else if (const auto* number = node.as_integer())
    entry.text = std::to_string(number->get());
  else if (node.is_table() || node.is_array())
    return Error{EINVAL, place_of(path, key.source()) + ": '" + entry.name +
                             "' is a table or a list: write options flat, as in budget = \"4G\""};
  else
    return Error{EINVAL, entry.place + ": the value of '" + entry.name +
                             "' is neither text nor a whole number: write it in quotes"};
  return entry;
}

// What to write in a line whose value is a text without quotes; empty: it is another mistake.
std::string remedy_for(const std::string& text, const toml::source_region& source) {
  size_t at = 0;
  for (toml::source_index line = 1; line < source.begin.line; ++line) at = text.find('\n', at) + 1;
  const std::string line = text.substr(at, text.find('\n', at) - at);
  const size_t equals = line.find('=');
  if (equals == std::string::npos) return {};
  const auto trimmed = [](const std::string& part) {
    const size_t from = part.find_first_not_of(" \t\r");
    return from == std::string::npos ? std::string()
                                     : part.substr(from, part.find_last_not_of(" \t\r") + 1 - from);
  };
  const std::string name = trimmed(line.substr(0, equals));
  const std::string value = trimmed(line.substr(equals + 1, line.find('#') - equals - 1));
  if (value.empty() || value.find_first_of("\"'[]{}=") != std::string::npos) return {};
  return "; write " + name + " = \"" + value + "\"";
}

Result<std::vector<ConfigEntry>> parse(const std::string& path, const std::string& text) {
  std::vector<std::tuple<toml::source_position, ConfigEntry>> found;
  try {
    const toml::table table = toml::parse(text, path);
    for (const auto& [key, node] : table) {
      Result<ConfigEntry> entry = read_entry(path, key, node);
      if (!entry) return entry.error();
      found.emplace_back(key.source().begin, std::move(entry.value()));
    }
  } catch (const toml::parse_error& error) {
    return Error{EINVAL, place_of(path, error.source()) + ": this is not TOML: " +
                             std::string(error.description()) + remedy_for(text, error.source())};
  }
  // Tables are sorted by name; report the first error in the order of the file.
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
  std::vector<ConfigEntry> entries;
  entries.reserve(found.size());
  for (auto& [position, entry] : found) entries.push_back(std::move(entry));
  return entries;
}

}  // namespace

Result<std::vector<ConfigEntry>> read_config_file(const std::string& path) {
  const auto refuse = [&](int code) {
    return base::system_error(code, "read the config file " + path,
                              "mend it, or set OUTCORE_CONFIG to another, or to nothing for none");
  };
  const int fd =
      os::above_standard(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd < 0) return refuse(errno);
  struct stat about {};
  if (::fstat(fd, &about) == 0 && !os::is_written(fd, about)) {
    ::close(fd);
    return Error{EINVAL, "read the config file " + path +
                             ": nobody writes to this pipe; set OUTCORE_CONFIG to a file, or to "
                             "nothing for none"};
  }
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(fd, buffer, sizeof buffer)) != 0 && text.size() <= kFileBytesMax) {
    if (got > 0)
      text.append(buffer, static_cast<size_t>(got));
    else if (errno != EINTR)
      break;
  }
  const int code = got < 0 ? errno : 0;
  ::close(fd);
  if (code != 0) return refuse(code);
  if (text.size() > kFileBytesMax) return refuse(EFBIG);
  return parse(path, text);
}

std::string find_config_file(const EnvironmentLookup& environment) {
  if (const char* path = environment("OUTCORE_CONFIG"); path != nullptr) return path;
  if (const char* home = environment("HOME"); home != nullptr && *home != 0) {
    std::string path = std::string(home) + "/.config/outcore.toml";
    if (::access(path.c_str(), F_OK) == 0) return path;
  }
  const char* path = "/etc/outcore.toml";
  return ::access(path, F_OK) == 0 ? path : "";
}

}  // namespace outcore::runtime
