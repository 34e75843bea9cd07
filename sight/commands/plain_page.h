// PlainPage: what a page of recorded runs shows where no script runs, as in a mail: of each run the
// verdict and the figures, as HTML. Any thread.
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"

namespace outcore::cli {

// A text that stays one, whatever is in it.
std::string html_text(const std::string& text);
// Of completed records (report.h): those of the processes that waited longest.
std::string plain_page(const std::vector<Json>& records);

}  // namespace outcore::cli
