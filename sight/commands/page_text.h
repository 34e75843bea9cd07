// PageText: the files that a report is made of, which are part of the command.
#pragma once

#include <string_view>

namespace outcore::cli {

// sight/page/report.html.
std::string_view page_template();
// d3 (https://d3js.org), which draws.
std::string_view drawing_library();

}  // namespace outcore::cli
