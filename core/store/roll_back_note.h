// RollBackNote: what a store with snapshots notes of itself while it is being brought back to one:
// in between it is neither as it was nor as it is to be, and nobody may use it.
#pragma once

#include <string>

#include "outcore/snapshots.h"
#include "outcore/store.h"

namespace outcore::store {

inline constexpr const char* kRollingBackNote = "rolling_back";

// To which checkpoint the store is being rolled back, or was when that was interrupted; empty: to
// none. 0 or -errno.
int find_roll_back(Store& store, std::string* to);

}  // namespace outcore::store
