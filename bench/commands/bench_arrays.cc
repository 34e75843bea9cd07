// outcore bench arrays: named arrays beside plain files, and after kills.
#include <cerrno>
#include <memory>

#include "bench/array_io.h"
#include "bench/array_kills.h"
#include "bench/commands/bench_figure.h"
#include "bench/progress.h"
#include "cli/command.h"
#include "cli/command_syntax.h"

namespace outcore::cli {
namespace {

struct Request {
  bench::ArrayIoOptions options;
  uint64_t kills = 0, kill_bytes = uint64_t{8} << 20;
  bool is_json = false, is_kills_alone = false;
};

Status check(const Request& request) {
  const bench::ArrayIoOptions& o = request.options;
  if (o.processes != 1 && o.processes != 2 && o.processes != 4)
    return Error{EINVAL, "--processes is 1, 2 or 4"};
  if (o.size_bytes < (1 << 20) || o.variables == 0 || o.variables > 64 || o.rounds == 0)
    return Error{EINVAL, "--size is at least 1M, --variables 1 to 64, --rounds 1 or more"};
  if (request.kill_bytes < (64 << 10)) return Error{EINVAL, "--kill-size is at least 64k"};
  if (request.is_kills_alone && request.kills == 0)
    return Error{EINVAL, "--kills-only: say how many by --kills"};
  return {};
}

int run(const Request& request) {
  if (Status s = check(request); !s) return report(s.error());
  const bench::ArrayIoOptions& o = request.options;
  const auto see = [&](const bench::Figure& figure) { print_figure(figure, request.is_json); };
  if (!request.is_kills_alone)
    if (Status s = bench::measure_array_io(o, see); !s) return report(s.error());
  if (request.kills == 0) return 0;
  bench::ArrayKillOptions kills;
  kills.kills = request.kills;
  kills.processes = o.processes;
  kills.bytes_max = request.kill_bytes;
  kills.seed = o.seed;
  kills.dir = o.dir;
  bench::Progress bar("kills");
  const Status s = bench::measure_array_kills(
      kills, see, [&](uint64_t done) { bar.show(done, request.kills, 0); });
  return s.ok() ? 0 : report(s.error());
}

}  // namespace

void add_bench_arrays(CommandSyntax& bench) {
  const auto request = std::make_shared<Request>();
  bench::ArrayIoOptions& o = request->options;
  bench
      .add("arrays",
           "Named arrays by several processes, beside plain files: written, read, viewed, and "
           "killed")
      .size("--size", o.size_bytes, "of all variables together (1G)")
      .option("--processes", o.processes, "that write and read at once (4)")
      .option("--variables", o.variables, "arrays of three dimensions (2)")
      .option("--rounds", o.rounds, "medians of so many are shown (3)")
      .number("--kills", request->kills, "of processes that write arrays (0)")
      .flag("--kills-only", request->is_kills_alone, "nothing but the kills")
      .size("--kill-size", request->kill_bytes, "of the largest array of them (8M)")
      .number("--seed", o.seed, "of the values, and of who does what (1)")
      .option("--dir", o.dir, "where the data is made (OUTCORE_BENCH_DIR, TMPDIR, /var/tmp)")
      .flag("--json", request->is_json, "one line of JSON a figure")
      .runs([request] { return run(*request); });
}

}  // namespace outcore::cli
