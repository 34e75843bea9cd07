// SnapshotNames: what snapshots and copies are called in the system that keeps them; and the note
// of a store that is being brought back to one: then it is neither as it was nor as it is to be.
#pragma once

#include <string>

#include "outcore/snapshots.h"
#include "outcore/store.h"

namespace outcore::store {

// Before the number, in the names of the snapshots that an anchor's checkpoints are.
std::string snapshot_prefix(const std::string& anchor_identity);
// A name as every system takes it, unique as the name is: what none may take becomes '_', and a
// hash follows.
std::string plain_name(const std::string& name);

inline constexpr const char* kRollingBackNote = "rolling_back";

// To which checkpoint the store is being rolled back, or was when that was interrupted; empty: to
// none. 0 or -errno.
int find_roll_back(Store& store, std::string* to);

}  // namespace outcore::store
