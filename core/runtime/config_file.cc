#include "core/runtime/config_file.h"

#include <fcntl.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "core/base/error.h"
#include "core/os/descriptor_place.h"

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
    return Error{EINVAL, place_of(path, error.source()) +
                             ": this is no TOML: " + std::string(error.description())};
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
  const int fd = os::above_standard(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd < 0) return refuse(errno);
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
