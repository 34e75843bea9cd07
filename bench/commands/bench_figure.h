// BenchFigure: a line of a benchmark's table: what was measured, what was asked.
#pragma once

#include "bench/checkpoints.h"

namespace outcore::cli {

void print_figure(const bench::Figure& figure, bool is_json);

}  // namespace outcore::cli
