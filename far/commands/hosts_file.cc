#include "far/commands/hosts_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <sstream>

#include "cli/command.h"
#include "cli/text.h"
#include "core/os/written_pipe.h"
#include "far/commands/host_address.h"

namespace outcore::cli {
namespace {

constexpr uint64_t kOwnBytesMin = uint64_t{1} << 20;
constexpr size_t kFileBytesMax = size_t{1} << 20;
constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

// These words become arguments of other commands, so only what can be a name is allowed.
bool is_name(const std::string& word, const char* others) {
  const std::string all = std::string(kLetters) + others;
  return !word.empty() && word[0] != '-' && word.find_first_not_of(all) == std::string::npos;
}

Result<std::string> read_text(const std::string& path) {
  constexpr const char* kRemedy = "name a file with a line for each host, as in 'node1 16G'";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return failure(errno, "read the hosts in " + path, kRemedy);
  struct stat facts {};
  std::string text(kFileBytesMax + 1, '\0');
  size_t size = 0;
  int error = ::fstat(file, &facts) == 0 ? 0 : errno;
  const bool is_ready = error == 0 && os::is_written(file, facts);
  while (is_ready && size < text.size()) {
    const ssize_t got = ::read(file, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  ::close(file);
  if (error != 0) return failure(error, "read the hosts in " + path, kRemedy);
  if (!is_ready)
    return Error{EINVAL, "read the hosts in " + path + ": nobody writes to this pipe: " + kRemedy};
  text.resize(size);
  if (text.size() > kFileBytesMax)
    return Error{EINVAL, path + " is longer than 1 MiB: name a file with a line for each host"};
  return text;
}

// Reads "[USER@]HOST SIZE" from the words of a line.
Result<Host> read_host(const std::vector<std::string>& words, uint64_t bytes_min) {
  static const std::string form = "write a line as [USER@]HOST SIZE, as in 'node1 16G'";
  if (words.size() != 2)
    return Error{EINVAL, "'" + words[0] + "' " +
                             (words.size() < 2 ? "has no size" : "has more words than a size") +
                             ": " + form};
  Host host;
  const size_t at = words[0].find('@');
  host.name = words[0].substr(at == std::string::npos ? 0 : at + 1);
  if (at != std::string::npos) host.user = words[0].substr(0, at);
  if (host.name.size() > 2 && host.name.front() == '[' && host.name.back() == ']')
    host.name = host.name.substr(1, host.name.size() - 2);
  if (at != std::string::npos && !is_name(host.user, "._-"))
    return Error{EINVAL, "'" + host.user + "' is not a user's name: " + form};
  if (!is_name(host.name, "._-:%"))
    return Error{EINVAL, "'" + host.name + "' is not a name or address of a host: " + form};
  const Result<uint64_t> bytes = parse_size(words[1]);
  if (!bytes) return bytes.error();
  host.bytes = bytes.value();
  if (host.bytes < bytes_min || host.bytes > kHostBytesMax)
    return Error{EINVAL, words[1] + " is " + (host.bytes < bytes_min ? "less" : "more") +
                             " than a host can give: say " + format_bytes(bytes_min) + " to " +
                             format_bytes(kHostBytesMax)};
  return host;
}

Status check_own(const Host& own) {
  if (!own.user.empty())
    return Error{EINVAL, "the first line is the machine that calculates, which is this one: " +
                             ("leave out '" + own.user) + "@'"};
  if (!is_this_machine(own.name))
    return Error{EINVAL, "'" + own.name + "' is not this machine (" + own_name() +
                             "): the first line names the one that calculates: start outcore run " +
                             "there, or write 'localhost' and how much memory the program may use"};
  return {};
}

Error in_line(const std::string& path, int line, const Error& error) {
  return {error.code, path + ":" + std::to_string(line) + ": " + error.message};
}

}  // namespace

std::string Host::title() const { return user.empty() ? name : user + "@" + name; }

std::string HostsFile::place(const Host& host) const {
  return path + ":" + std::to_string(host.line);
}

Result<HostsFile> HostsFile::read(const std::string& path) {
  const Result<std::string> text = read_text(path);
  if (!text) return text.error();
  HostsFile file;
  file.path = path;
  std::istringstream lines(text.value());
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream line_words(line.substr(0, line.find('#')));
    const std::vector<std::string> words{std::istream_iterator<std::string>(line_words), {}};
    if (words.empty()) continue;
    const bool is_own = file.own.line == 0;
    Result<Host> host = read_host(words, is_own ? kOwnBytesMin : kHostBytesMin);
    if (!host) return in_line(path, number, host.error());
    host->line = number;
    if (is_own)
      if (Status status = check_own(host.value()); !status)
        return in_line(path, number, status.error());
    if (file.others.size() == kHostsMax)
      return in_line(path, number,
                     {EINVAL, "more than " + std::to_string(kHostsMax) +
                                  " hosts: give fewer, with more memory each"});
    if (is_own)
      file.own = host.value();
    else
      file.others.push_back(host.value());
  }
  if (file.own.line == 0)
    return Error{EINVAL, path + " names no host: write this machine first, as in 'localhost 4G', " +
                             "and then a line for each host that gives memory"};
  if (file.others.empty())
    return Error{EINVAL, file.place(file.own) +
                             ": only the machine that calculates is there: write a line for each " +
                             "host that gives memory, as in 'node1 16G'"};
  return file;
}

}  // namespace outcore::cli
