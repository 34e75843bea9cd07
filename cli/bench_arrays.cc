// outcore bench arrays: named arrays beside plain files.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>

#include "bench/array_io.h"
#include "cli/bench_figure.h"
#include "cli/command.h"

namespace outcore::cli {
namespace {

struct Request {
  bench::ArrayIoOptions options;
  bool is_json = false;
};

int run(const Request& request) {
  const bench::ArrayIoOptions& o = request.options;
  if (o.processes != 1 && o.processes != 2 && o.processes != 4)
    return report(Error{EINVAL, "--processes is 1, 2 or 4"});
  if (o.size_bytes < (1 << 20) || o.variables == 0 || o.variables > 64 || o.rounds == 0)
    return report(Error{EINVAL, "--size is at least 1M, --variables 1 to 64, --rounds 1 or more"});
  const Status s = bench::measure_array_io(
      o, [&](const bench::Figure& figure) { print_figure(figure, request.is_json); });
  return s.ok() ? 0 : report(s.error());
}

}  // namespace

void add_bench_arrays(CLI::App& bench, int& status) {
  const auto request = std::make_shared<Request>();
  CLI::App* const app = bench.add_subcommand(
      "arrays", "Named arrays by several processes, beside plain files: written, read, viewed");
  bench::ArrayIoOptions& o = request->options;
  add_bytes(*app, "--size", o.size_bytes, "of all variables together (1G)");
  app->add_option("--processes", o.processes, "that write and read at once (4)");
  app->add_option("--variables", o.variables, "arrays of three dimensions (2)");
  app->add_option("--rounds", o.rounds, "medians of so many are shown (3)");
  add_number(*app, "--seed", o.seed, "of the values (1)");
  app->add_option("--dir", o.dir, "where the data is made (OUTCORE_BENCH_DIR, TMPDIR, /var/tmp)");
  app->add_flag("--json", request->is_json, "one line of JSON a figure");
  app->callback([request, &status] { status = run(*request); });
}

}  // namespace outcore::cli
