// Columns: what `outcore top` shows of processes, and of their files.
#pragma once

#include <vector>

#include "sight/commands/table.h"
#include "sight/commands/watch.h"

namespace outcore::cli {

const std::vector<Column<ProcessView>>& process_columns();
const std::vector<Column<StoreView>>& store_columns();

// How bad it is that so many threads wait.
Look look_of_stalled(double stalled);
// Without the folder of the program: its words say more.
std::string short_command(const ProcessView& process);
std::string name_of(const StoreView& store);  // its path, or its URI
std::optional<double> amplification_of(const StoreView& store);
double share_of(uint64_t part, uint64_t whole);  // 0 … 1

}  // namespace outcore::cli
