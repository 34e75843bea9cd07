// outcore run: starts a program with the preload library in it, and is that program from then on:
// same process, exit status, signals, input and output.
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/kept_descriptor.h"
#include "cli/text.h"
#include "core/base/earlier_output.h"
#include "outcore/runtime.h"
#include "run/commands/check_environment.h"
#include "run/commands/program.h"
#include "run/commands/run_command.h"
#include "run/commands/run_hosts.h"
#include "run/commands/run_options.h"
#include "run/commands/run_window.h"
#include "run/commands/watched_run.h"

namespace outcore::cli {
namespace {

constexpr int kCannotStart = 126;  // as env(1) and shells say it
constexpr int kNotFound = 127;

constexpr const char* kLibraryName = "liboutcore_preload.so";
// From the folder of this command, in the order of preference.
constexpr const char* kLibraryFolders[] = {"", "../lib/", "../lib/x86_64-linux-gnu/", "../lib64/",
                                           "../lib/outcore/"};

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real == nullptr ? "" : real.get();
}

Result<std::string> find_library() {
  const char* const named = std::getenv("OUTCORE_PRELOAD_LIBRARY");
  std::string path;
  if (named != nullptr && *named != 0) {
    path = real_path(named);
    if (path.empty() || ::access(path.c_str(), R_OK) != 0)
      return failure(errno, std::string("OUTCORE_PRELOAD_LIBRARY=") + named,
                     "name the file of " + std::string(kLibraryName));
  } else {
    const std::string own = own_folder();
    for (const char* folder : kLibraryFolders)
      if (path.empty()) path = real_path(own + folder + kLibraryName);
    if (path.empty())
      return Error{ENOENT, std::string(kLibraryName) + " is neither in " + own + " nor in " + own +
                               "../lib: install it there, or name it in OUTCORE_PRELOAD_LIBRARY"};
  }
  if (path.find_first_of(" :") != std::string::npos)
    return Error{ENOENT, "the loader would cut '" + path +
                             "' at its space or colon: copy the library to a path without, and "
                             "name that in OUTCORE_PRELOAD_LIBRARY"};
  return path;
}

// In front of what else is preloaded, once.
void preload(const std::string& library) {
  const char* const before = std::getenv("LD_PRELOAD");
  const std::string others = before == nullptr ? "" : before;
  for (size_t at = 0; at < others.size();) {
    const size_t end = std::min(others.find_first_of(" :", at), others.size());
    if (others.compare(at, end - at, library) == 0) return;
    at = end + 1;
  }
  ::setenv("LD_PRELOAD", (others.empty() ? library : library + ":" + others).c_str(), 1);
}

// Memory that all processes of the run share, for the table of the end: a file that outlives exec,
// where programs do not look for theirs.
Status add_report_memory() {
  constexpr unsigned kNeverExecuted = 8;  // MFD_NOEXEC_SEAL, Linux 6.3
  int file = ::memfd_create("outcore-run", kNeverExecuted);
  if (file == -1) file = ::memfd_create("outcore-run", 0);
  if (file == -1)
    return failure(errno, "make memory for the table of the end",
                   "allow memfd_create in the sandbox's system calls");
  file = keep_descriptor(file);
  const std::string pid = std::to_string(::getpid());
  const std::string report = pid + ":" + std::to_string(file);
  ::setenv("OUTCORE_RUN_ROOT", pid.c_str(), 1);
  // Its first line is the process; that of an outer run has one.
  const char* const before = std::getenv(base::EarlierOutput::kVariable);
  if (before != nullptr && *before == '\n')
    ::setenv(base::EarlierOutput::kVariable, (pid + before).c_str(), 1);
  // Of no other run, now or later.
  uint64_t chance = 0;
  if (::getrandom(&chance, sizeof chance, 0) == sizeof chance)
    ::setenv("OUTCORE_RUN_BUFFER", ("run-" + pid + "-" + std::to_string(chance)).c_str(), 1);
  ::setenv("OUTCORE_RUN_REPORT", report.c_str(), 1);
  return {};
}

// Checks the runtime's options before the program starts. Only if something was set: a config file
// of the user or the machine is not an option of this run, and the library reports what is wrong
// with it, as it does in every program. For a program that cannot start nothing is looked for, nor
// made.
Status check_options(const RunOptions& options, const Program& program) {
  if (!has_runtime_options(options)) return {};
  const Status status = program.error == 0 ? Runtime::check_start() : check_runtime_options();
  return status ? status : Error{status.code(), in_words_of_flags(status.message(), options)};
}

// What keeps the library out of the program, if anything does: the program runs all the same.
const Obstacle* find_obstacle(const Program& program) {
  if (program.error != 0) return nullptr;
  for (const Obstacle& obstacle : program.files.back().obstacles)
    if (!obstacle.is_for_others) return &obstacle;
  return nullptr;
}

int tell_failed_start(const std::string& name, const Program& found, int why) {
  if (why == EACCES && found.error == ENOENT) why = ENOENT;  // a folder of PATH may not be searched
  std::string remedy = "see outcore check " + name;
  if (why == ENOENT && found.error == ENOENT && found.missing != name)
    remedy = "it needs " + found.missing + ", which is not there";
  else if (why == ENOENT)
    remedy = name.find('/') == std::string::npos ? "write its path, or add its folder to PATH"
                                                 : "write a path that is there";
  else if (why == EACCES)
    remedy = "name a file that you may execute (chmod +x)";
  report(failure(why, "run " + name, remedy));
  return why == ENOENT ? kNotFound : kCannotStart;
}

int start(const CommandSyntax& run, const RunOptions& options, char** words) {
  if (*words == nullptr)
    return report(Error{
        EINVAL, "a program is missing: say which, as in outcore run --budget 4G -- sort FILE"});
  const std::string name = *words;
  const Result<RunHosts> hosts = read_run_hosts(options);
  if (!hosts) return report(hosts.error());
  if (Status status = set_run_environment(options); !status) return report(status.error());
  const Result<std::string> library = find_library();
  if (!library) return report(library.error());
  tell_unknown_variables();
  const Program program = find_program(name);
  if (Status status = check_options(options, program); !status) return report(status.error());
  const std::optional<std::string> page = report_page(options);
  if (page || options.metrics) {
    auto watched = WatchedRun::prepare(page, options.metrics);
    if (!watched) return report(watched.error());
    const Result<std::optional<int>> ended = watched.value()->start();
    if (!ended) return report(ended.error());
    if (ended.value()) return *ended.value();
  }
  if (Status status = start_run_hosts(hosts.value()); !status) return report(status.error());
  if (Status status = check_far_store(hosts.value()); !status) return report(status.error());
  const Obstacle* const obstacle = find_obstacle(program);
  const bool would_fail =
      !program.files.empty() && program.files.back().elf && is_musl(*program.files.back().elf);
  if (!would_fail) preload(library.value());
  if (Status status = add_report_memory(); !status) return report(status.error());
  ::setenv("OUTCORE_RUN_COMMAND", run_command(run, own_words(words), words).c_str(), 1);
  if (obstacle != nullptr && std::getenv("OUTCORE_RUN_QUIET") == nullptr)
    report(Error{ENOEXEC, program.files.back().path + " " + obstacle->text +
                              ": its mappings stay with the kernel; " + obstacle->remedy});
  set_up_run_window(obstacle == nullptr && !would_fail);
  ::execvp(name.c_str(), words);
  return tell_failed_start(name, program, errno);
}

}  // namespace

CommandSyntax& add_run(CommandSyntax& outcore, char** const& program) {
  auto options = std::make_shared<RunOptions>();
  CommandSyntax& run =
      outcore.add("run", "Start an unmodified program with its large file mappings in Outcore");
  add_run_options(run, *options);
  run.footer(
      "Sizes are numbers with k, M, G or T. "
      "Each option but --metrics has a variable, and wins over it:\n"
      "--min-size is OUTCORE_RUN_MIN_SIZE, --budget is OUTCORE_BUDGET.\n"
      "Examples:\n"
      "  outcore run --budget 4G -- kraken2 --memory-mapping --db standard reads.fq\n"
      "  outcore run --budget 25% --map '*.npy' python3 train.py\n"
      "  outcore run --alloc 64M --store scratch:. -- sort big.txt\n"
      "  outcore run --alloc 1M --hosts hosts.txt -- sort -S 40G big.txt\n"
      "  outcore check kraken2         says beforehand what would not work");
  return run.runs([&run, options, &program] { return start(run, *options, program); });
}

}  // namespace outcore::cli
