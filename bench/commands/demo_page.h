// DemoPage: what `outcore demo` measured, as one page that opens from disk: bars, numbers, what to
// try next.
#pragma once

#include <string>
#include <vector>

#include "bench/runner.h"
#include "outcore/result.h"

namespace outcore::cli {

struct DemoPart {
  std::string title, text;            // what was done; where its data is from
  std::vector<bench::Series> series;  // Outcore's first
  std::string verdict;                // a sentence
};

struct DemoCommand {
  std::string line, why;
};

struct DemoPage {
  std::string machine;  // kernel, device, limit: a sentence or two
  std::vector<DemoPart> parts;
  std::vector<DemoCommand> next;

  // A whole document: it loads nothing, and follows the reader's choice of light or dark.
  std::string to_html() const;
  // Errors: what the system said of the file.
  Status save(const std::string& path) const;
};

// How people call a memory of the benchmarks.
std::string name_for_people(const std::string& memory);

}  // namespace outcore::cli
