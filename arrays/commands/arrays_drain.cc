#include "arrays/commands/arrays_drain.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "arrays/commands/open_file.h"
#include "cli/command.h"
#include "cli/interrupts.h"
#include "cli/json.h"
#include "cli/text.h"
#include "outcore/arrays_drain.h"

namespace outcore::cli {
namespace {

constexpr uint64_t kLookEveryMs = 100;

void show(const DrainProgress& progress) {
  std::fprintf(stderr, "\rdrain: %s of %s, array %llu of %llu   ",
               format_bytes(progress.bytes_done).c_str(), format_bytes(progress.bytes).c_str(),
               static_cast<unsigned long long>(progress.arrays_done),
               static_cast<unsigned long long>(progress.arrays));
}

// What is wrong with one of the containers is no wrong usage.
Error explain(const DrainCommand& command, const Error& error) {
  if (error.code != EINVAL) return error;
  for (const std::string& uri : {command.from, command.to})
    if (const auto arrays = open_container(uri); arrays.code() == EIO) return arrays.error();
  return error;
}

}  // namespace

Status drain_arrays(const DrainCommand& command) {
  DrainOptions options;
  options.names = command.names;
  options.may_remove = command.may_remove;
  if (!command.rate.empty()) {
    const auto rate = parse_size(command.rate);
    if (!rate) return Error{EINVAL, "--rate: " + rate.message()};
    if (rate.value() == 0)
      return Error{EINVAL, "--rate 0: give the bytes of a second, or leave it out"};
    options.bytes_per_second = rate.value();
  }
  catch_interrupts();
  auto drain = ArraysDrain::start(command.from, command.to, options);
  if (!drain) return explain(command, drain.error());
  const bool is_terminal = ::isatty(STDERR_FILENO) != 0;
  while (!drain->wait_for(kLookEveryMs)) {
    if (is_interrupted()) drain->cancel();
    if (is_terminal) show(drain->progress());
  }
  const Status s = drain->wait();
  const DrainProgress done = drain->progress();
  if (is_terminal) {
    show(done);
    std::fputc('\n', stderr);
  }
  if (s.code() == ECANCELED)
    return Error{EINTR, "drain " + command.from + " to " + command.to +
                            ": interrupted: " + std::to_string(done.arrays_done) + " of " +
                            std::to_string(done.arrays) +
                            " arrays are there: the same command goes on with the others"};
  if (!s.ok()) return s;
  if (command.is_json) {
    const Json line = {{"arrays", done.arrays},
                       {"bytes", done.bytes},
                       {"to", command.to},
                       {"removed", command.may_remove}};
    show_json(line);
  } else {
    std::printf("%llu %s, %s, in %s, verified%s\n", static_cast<unsigned long long>(done.arrays),
                done.arrays == 1 ? "array" : "arrays", format_bytes(done.bytes).c_str(),
                command.to.c_str(), command.may_remove ? ", and removed here" : "");
  }
  return {};
}

}  // namespace outcore::cli
