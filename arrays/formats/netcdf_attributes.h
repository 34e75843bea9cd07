// NetcdfAttributes: what a NetCDF file says of itself or of a variable, numbers as texts.
#pragma once

#include "arrays/commands/array_file.h"

namespace outcore::cli {

// variable: NC_GLOBAL for those of the group.
Texts load_netcdf_attributes(int group, int variable);

}  // namespace outcore::cli
