// Table: what Outcore must show, row by row: the target, the figure, met or not.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/runner.h"

namespace outcore::bench {

struct TableOptions {
  std::string disk_dir;  // on the machine's disk
  std::string
      fast_dir;  // on a device of a few microseconds; empty: rows that need one are left out
  bool is_quick = false;  // a quarter of the data, and one run each
  std::string only;       // rows whose name has this; empty: all
};

struct RowResult {
  std::string name, target, figure;
  bool is_met = false;
  bool is_measured = true;  // false: refused (outer runs differ), or the device is missing
};

// A row: what it runs, and how the runs are judged.
struct Row {
  std::string name;
  std::string target;
  bool is_fast = false;        // needs the fast device; otherwise runs on the disk
  std::vector<Options> parts;  // each gives one vector of Series
  std::function<RowResult(const std::vector<std::vector<Series>>&)> judge;
};

std::vector<Row> table_rows(const TableOptions& options);

// Runs rows one after the other. What one has made stays for the next, unless that needs other
// data: the devices have room for one kind of data, and for what a run makes beside it. The caller
// removes what is left (Data::remove_kept).
class RowRunner {
 public:
  // `see` hears of each run.
  RowResult run(const Row& row, const std::function<void(const RunResult&)>& see);

 private:
  std::optional<Options> before_;
};

}  // namespace outcore::bench
