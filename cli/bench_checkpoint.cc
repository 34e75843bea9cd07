// outcore bench checkpoint: what checkpoints cost, and what is there after a kill.
#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/checkpoints.h"
#include "bench/progress.h"
#include "bench/text.h"
#include "cli/command.h"

namespace outcore::cli {
namespace {

struct Request {
  bench::CheckpointOptions options;
  double changed = 1;  // percent
  bool is_json = false, is_kills_alone = false;
};

void print(const Request& request, const bench::Figure& figure) {
  if (request.is_json) {
    const nlohmann::json line = {{"name", figure.name},       {"value", figure.value},
                                 {"asked", figure.asked},     {"is_most", figure.is_most},
                                 {"is_met", figure.is_met()}, {"unit", figure.unit},
                                 {"how", figure.how}};
    std::printf("%s\n", line.dump().c_str());
  } else {
    const std::string value =
        bench::format("%.3g%s%s", figure.value, figure.unit == "x" ? "" : " ", figure.unit.c_str());
    std::printf("%-60s %10s  %s %-8.3g %-3s  %s\n", figure.name.c_str(), value.c_str(),
                figure.is_most ? "<=" : ">=", figure.asked, figure.is_met() ? "ok" : "NOT",
                figure.how.c_str());
  }
  std::fflush(stdout);
}

Status check(const Request& request) {
  const bench::CheckpointOptions& o = request.options;
  if (o.size_bytes < (uint64_t{16} << 20) || o.kill_bytes < (64 << 10))
    return Error{EINVAL, "--size is at least 16M, --kill-size 64k"};
  if (!(request.changed > 0 && request.changed <= 100))
    return Error{EINVAL, "--changed is a percentage, above 0 and at most 100"};
  if (o.threads == 0 || o.threads > 256) return Error{EINVAL, "--threads is 1 to 256"};
  if (request.is_kills_alone && o.kills == 0)
    return Error{EINVAL, "--kills-only: say how many by --kills"};
  return {};
}

int run(Request& request) {
  if (Status s = check(request); !s) return report(s.error());
  request.options.changed = request.changed / 100;
  const auto see = [&](const bench::Figure& figure) { print(request, figure); };
  if (!request.is_kills_alone)
    if (Status s = bench::measure_checkpoints(request.options, see); !s) return report(s.error());
  if (request.options.kills == 0) return 0;
  bench::Progress bar("kills");
  const Status s = bench::measure_kills(
      request.options, see, [&](uint64_t done) { bar.show(done, request.options.kills, 0); });
  return s.ok() ? 0 : report(s.error());
}

}  // namespace

void add_bench_checkpoint(CLI::App& bench, int& status) {
  const auto request = std::make_shared<Request>();
  CLI::App* const app = bench.add_subcommand(
      "checkpoint", "Checkpoints of a running program: bytes, pauses, speed, and kills");
  bench::CheckpointOptions& o = request->options;
  add_bytes(*app, "--size", o.size_bytes, "of the region (4G)");
  add_bytes(*app, "--budget", o.budget_bytes, "of the program (a quarter more than --size)");
  app->add_option("--changed", request->changed, "percent of the pages, before a later one (1)");
  app->add_option("--threads", o.threads, "that write meanwhile (1)");
  add_number(*app, "--kills", o.kills, "of a program that checkpoints every 100 ms (0)");
  app->add_flag("--kills-only", request->is_kills_alone, "nothing but the kills");
  add_bytes(*app, "--kill-size", o.kill_bytes, "of the region of that program (16M)");
  add_number(*app, "--seed", o.seed, "the same seed, the same writes (1)");
  app->add_option("--dir", o.dir, "where the data is made (OUTCORE_BENCH_DIR, TMPDIR, /var/tmp)");
  app->add_flag("--json", request->is_json, "one line of JSON a figure");
  app->callback([request, &status] { status = run(*request); });
}

}  // namespace outcore::cli
