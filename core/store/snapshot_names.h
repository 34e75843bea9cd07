// SnapshotNames: the names of snapshots and copies in the system that keeps them; and the note on a
// store that is being rolled back, whose contents are a mixture of two states meanwhile. Any
// thread; not on the fault path.
#pragma once

#include <string>

#include "outcore/snapshots.h"
#include "outcore/store.h"

namespace outcore::store {

// The part before the number in the snapshot names of an anchor's checkpoints.
std::string snapshot_prefix(const std::string& anchor_identity);
// A form of the name that every system accepts, and that is as unique as the name: characters that
// some system refuses become '_', and a hash is appended.
std::string plain_name(const std::string& name);

inline constexpr const char* kRollingBackNote = "rolling_back";

// *to: the checkpoint of a rollback that is under way or was interrupted; unchanged if there is
// none. 0 or -errno.
int find_roll_back(Store& store, std::string* to);

}  // namespace outcore::store
