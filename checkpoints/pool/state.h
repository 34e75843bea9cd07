// State: what a pool contained at a commit. It is computed from a journal: the base, and the
// records after it.
//
// One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/pool/chunk_map.h"
#include "checkpoints/pool/disk.h"
#include "checkpoints/pool/journal.h"
#include "checkpoints/pool/mapped_array.h"

namespace outcore::versioned {

struct StateObject {
  std::string name;
  uint64_t size_bytes = 0;
  std::unique_ptr<ChunkMap> map;
};

struct State {
  uint64_t pool_id = 0;
  uint32_t chunk_bytes = 0;
  uint32_t commit = 0;  // the number of this state's commit; 0: none yet
  uint32_t next_object = 1;
  std::map<uint32_t, StateObject> objects;
  std::vector<Checkpoint> checkpoints;  // ascending by number
  MappedArray<Grave> graves;            // what died, perhaps more than any checkpoint needs

  const Checkpoint* find(const std::string& name) const;
};

inline constexpr const char* kNoMemory = "there is no memory for the map";
// Applies the record. Returns an empty text, or why it cannot be applied: then the state has a part
// of it, and must not be used. kNoMemory is not the fault of the record.
std::string apply(State& state, const Record& record);

// A journal that was read to its end, to a commit, or to where it is damaged.
struct Loaded {
  State state;
  bool has_base = false;
  uint64_t base_bytes = 0;  // of the records of its base
  uint64_t last = 0;        // where the last record begins
  uint64_t end = 0;         // where the next record goes
  uint64_t sequence = 0;    // its number
  bool is_torn = false;     // a part of a record follows the end
  bool is_closed = false;   // the last record says that the writer closed the pool
  bool is_continued = false;
  Status damage;  // EIO, and where; `state` is the one before it
};
// Errors: those of the system; EINVAL (a newer format).
Result<Loaded> load_journal(Disk& disk, uint32_t number, std::optional<uint32_t> until = {});
// The commit that the journal begins with. Errors: EIO (it has no base).
Result<uint32_t> first_commit_of(Disk& disk, uint32_t number);
// The numbers of all journals, ascending.
Result<std::vector<uint32_t>> list_journals(Disk& disk);

// The state of a checkpoint or of the last commit. It is read from the last journal that begins
// with this commit or an earlier one. Errors: EIO (damage before it), ENOENT.
Result<State> load_commit(Disk& disk, uint32_t commit);

// The graves that held states need, at most one for each block, ascending. If a block died, came
// back by a rollback and died again, its last grave counts; a block that lives has none. Errors:
// ENOMEM.
Result<MappedArray<Grave>> needed_graves(const State& state, const std::vector<uint32_t>& held);

// Writes the base of a new journal. It is not durable yet. 0 or -errno.
int write_base(Journal& journal, const State& state, const MappedArray<Grave>& graves);

}  // namespace outcore::versioned
