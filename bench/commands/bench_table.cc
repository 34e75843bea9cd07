// outcore bench table: what Outcore must show, row by row.
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <memory>

#include "bench/data.h"
#include "bench/medium.h"
#include "bench/table.h"
#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/interrupts.h"
#include "cli/text.h"

namespace outcore::cli {
namespace {

struct TableRequest {
  bench::TableOptions options;
  std::string json_path = "bench-table.json";
};

void tell_devices(const bench::TableOptions& options) {
  const auto tell = [](const char* what, const std::string& dir) {
    const bench::Device device = bench::device_of(dir);
    const auto ahead_kb = static_cast<long long>(device.read_ahead_kb);
    std::printf("%s: %s on %s%s\n", what, dir.c_str(), device.name.c_str(),
                ahead_kb < 0 ? "" : format(", read_ahead_kb %lld", ahead_kb).c_str());
  };
  tell("disk", options.disk_dir);
  if (options.fast_dir.empty())
    std::printf("fast device: none; its rows are left out. Give one with --fast DIR\n");
  else
    tell("fast device", options.fast_dir);
}

int run_table(const TableRequest& request) {
  std::ofstream json(request.json_path);
  if (!json) return report(failure(errno, "write " + request.json_path, "use --json-file"));
  catch_interrupts();
  tell_devices(request.options);
  std::printf("\n%-50s %-36s %-30s %s\n", "work", "at least", "figure", "");
  unsigned met = 0, missed = 0, open = 0, left_out = 0;
  bench::RowRunner runner;
  for (const bench::Row& row : bench::table_rows(request.options)) {
    if (is_interrupted()) break;
    bench::RowResult result;
    if (row.is_fast && request.options.fast_dir.empty()) {
      result.figure = "no fast device";
      result.is_measured = false;
      ++left_out;
    } else {
      result = runner.run(row, [&](const bench::RunResult& run) {
        Json line = run.to_json();
        line["row"] = row.name;
        json << line.dump() << '\n' << std::flush;
      });
    }
    const char* const verdict = !result.is_measured ? "not measured"
                                : result.is_met     ? "met"
                                                    : "NOT MET";
    ++(!result.is_measured ? open : result.is_met ? met : missed);
    std::printf("%-50s %-36s %-30s %s\n", row.name.c_str(), row.target.c_str(),
                result.figure.c_str(), verdict);
    std::fflush(stdout);
  }
  bench::Data::remove_kept();
  if (is_interrupted())
    return report(Error{EINTR,
                        "bench table: interrupted: the rows that ended are above, their "
                        "runs in " +
                            request.json_path});
  std::printf("\n%u met, %u not met, %u not measured; all runs are in %s\n", met, missed, open,
              request.json_path.c_str());
  json.close();
  if (!json) return report(failure(EIO, "write " + request.json_path, "use --json-file"));
  // Rows that were left out for want of a device are no failure; those that could not be run are.
  return missed == 0 && open == left_out ? 0 : kFailed;
}

// A part of a name that no row has is told before the file of all runs is emptied.
std::string check_rows(const std::string& text) {
  bench::TableOptions options;
  options.only = text;
  return bench::table_rows(options).empty()
             ? "no row has '" + text + "' in its name: use a part of one, as in sort or scan"
             : std::string();
}

}  // namespace

void add_bench_table(CommandSyntax& bench_part) {
  auto request = std::make_shared<TableRequest>();
  bench::TableOptions& o = request->options;
  o.disk_dir = "/var/tmp";
  bench_part.add("table", "what Outcore must show, row by row: target, figure, verdict")
      .flag("--quick", o.is_quick, "a quarter of the data, one run each")
      .option("--disk", o.disk_dir, "a directory on the disk (/var/tmp)")
      .folder()
      .option("--fast", o.fast_dir,
              "a directory on a device of a few microseconds, as tools/fast_device.sh makes")
      .folder()
      .option("--only", o.only, "rows whose name has this")
      .check(check_rows)
      .option("--json-file", request->json_path, "all runs, one a line (bench-table.json)")
      .footer("Example:\n  outcore bench table --quick --disk /var/tmp --fast /mnt/fast")
      .runs([request] { return run_table(*request); });
}

}  // namespace outcore::cli
