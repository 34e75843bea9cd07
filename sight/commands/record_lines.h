// RecordLines: the lines of a file of records, one a runtime (docs/reference/run-format.md), one
// after the other, so that only one of them is in memory. One thread.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace outcore::cli {

class RecordLines {
 public:
  static constexpr uint64_t kBytesMax = uint64_t{64} << 20;

  // A file that cannot be read has no lines.
  explicit RecordLines(const std::string& path);
  bool is_open() const { return file_.is_open(); }

  // False: there are no more. A line longer than kBytesMax is cut there.
  bool next(std::string* line);
  // Of the last line: it ended with the line's end, and not with the file's, nor was it cut.
  bool is_whole() const { return is_whole_; }

 private:
  std::ifstream file_;
  bool is_whole_ = false;
};

// Of the runtime whose record the line is; 0: it does not say.
uint64_t started_ns_of(const std::string& line);

}  // namespace outcore::cli
