// WatchedRun: a run that is watched: the command stays beside the program, forwards signals,
// serves metrics, makes the report when the program ends, and ends as it has ended.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "outcore/result.h"

namespace outcore::cli {

class LastRecord;
class MetricsExport;

class WatchedRun {
 public:
  // `page`: where the report goes; `metrics`: as MetricsExport has it. Sets OUTCORE_REPORT for the
  // program. Errors: those of the folder, and of temporary files.
  static Result<std::unique_ptr<WatchedRun>> prepare(const std::optional<std::string>& page,
                                                     const std::optional<std::string>& metrics);
  ~WatchedRun();
  WatchedRun(const WatchedRun&) = delete;
  WatchedRun& operator=(const WatchedRun&) = delete;

  // Forks. In the child, which is to become the program, it returns nothing. In the parent it
  // returns the program's exit status once that has ended; or does not return, if a signal has
  // ended it, which then ends this process as well. Errors: those of pipe2 and fork; EADDRINUSE and
  // others of the metrics; nothing is started then.
  Result<std::optional<int>> start();

 private:
  WatchedRun() = default;
  int stay(int program, MetricsExport* exported, LastRecord* last) const;
  void add_last_records(int status, const LastRecord& last) const;
  void make_report(int status, const LastRecord& last);
  void remove_records();

  std::optional<std::string> page_, metrics_;
  std::string records_;  // a temporary file; empty: there is no page
};

}  // namespace outcore::cli
