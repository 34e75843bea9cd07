#include "bench/commands/bench_figure.h"

#include <cstdio>

#include "cli/json.h"
#include "cli/text.h"

namespace outcore::cli {

void print_figure(const bench::Figure& figure, bool is_json) {
  if (is_json) {
    const Json line = {{"name", figure.name},       {"value", figure.value},
                       {"asked", figure.asked},     {"is_most", figure.is_most},
                       {"is_met", figure.is_met()}, {"unit", figure.unit},
                       {"how", figure.how}};
    show_json(line);
  } else {
    const std::string value =
        format("%.3g%s%s", figure.value, figure.unit == "x" ? "" : " ", figure.unit.c_str());
    std::printf("%-60s %10s  %s %-8.3g %-3s  %s\n", figure.name.c_str(), value.c_str(),
                figure.is_most ? "<=" : ">=", figure.asked, figure.is_met() ? "ok" : "NOT",
                figure.how.c_str());
  }
  std::fflush(stdout);
}

}  // namespace outcore::cli
