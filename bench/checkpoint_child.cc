// Children that measure, and their folder. See checkpoints.h.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "bench/checkpoints.h"
#include "bench/data.h"
#include "cli/interrupts.h"
#include "cli/text.h"

namespace outcore::bench {

Result<OwnFolder> OwnFolder::make(const std::string& dir) {
  Options of_data;
  of_data.dir = dir;
  const std::string parent = data_dir(of_data);
  std::string path = parent + "/outcore-bench-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    return Error{errno, "make a folder in " + parent + ": " + std::strerror(errno) +
                            ": name another with --dir"};
  return OwnFolder(path);
}

OwnFolder::~OwnFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

void end_with_parent() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
}

Status in_child(const std::function<Status(const SeeFigure&)>& work, const SeeFigure& see) {
  int lines[2];
  if (::pipe(lines) != 0) return cli::failure(errno, "make a pipe");
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return cli::failure(errno, "start a process that measures");
  if (child == 0) {
    end_with_parent();
    ::close(lines[0]);
    std::FILE* const out = ::fdopen(lines[1], "w");
    if (out == nullptr) ::_exit(1);
    const Status s = work([&](const Figure& f) {
      std::fprintf(out, "F\t%s\t%.17g\t%.17g\t%d\t%s\t%s\n", f.name.c_str(), f.value, f.asked,
                   f.is_most ? 1 : 0, f.unit.c_str(), f.how.c_str());
      std::fflush(out);
    });
    std::fprintf(out, "E\t%d\t%s\n", s.code(), s.message().c_str());
    std::fclose(out);
    ::_exit(0);
  }
  ::close(lines[1]);
  std::FILE* const in = ::fdopen(lines[0], "r");
  Status result = Error{EIO, "the process that measures ended before its time"};
  char* line = nullptr;
  size_t room = 0;
  while (in != nullptr && ::getline(&line, &room, in) > 0) {
    std::string text = line;
    if (text.ends_with('\n')) text.pop_back();
    std::vector<std::string> parts;
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find('\t', at), text.size());
      parts.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    if (parts.size() == 7 && parts[0] == "F")
      see({parts[1], std::strtod(parts[2].c_str(), nullptr), std::strtod(parts[3].c_str(), nullptr),
           parts[4] == "1", parts[5], parts[6]});
    else if (parts.size() >= 3 && parts[0] == "E")
      result = parts[1] == "0"
                   ? Status()
                   : Status(Error{static_cast<int>(std::strtol(parts[1].c_str(), nullptr, 10)),
                                  parts[2]});
  }
  std::free(line);
  if (in != nullptr) std::fclose(in);
  if (cli::is_interrupted()) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  return cli::is_interrupted() ? Status(Error{EINTR, "interrupted"}) : result;
}

}  // namespace outcore::bench
