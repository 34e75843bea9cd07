// State: what a pool held at a commit, put together from a journal: its base and what came after.
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
  uint32_t commit = 0;  // of this state; 0: nothing was committed yet
  uint32_t next_object = 1;
  std::map<uint32_t, StateObject> objects;
  std::vector<Checkpoint> checkpoints;  // ascending by number
  MappedArray<Grave> graves;            // what died; more than any checkpoint needs

  const Checkpoint* find(const std::string& name) const;
};

inline constexpr const char* kNoMemory = "there is no memory for the map";
// Carries the record out. Empty, or why it cannot be: then the state has only a part of it, and is
// no commit's any more. kNoMemory is no fault of the record's.
std::string apply(State& state, const Record& record);

// A journal, read to its end, to a commit, or to where it is damaged.
struct Loaded {
  State state;
  bool has_base = false;
  uint64_t base_bytes = 0;  // of the records of the base
  uint64_t last = 0;        // where the last record begins
  uint64_t end = 0;         // where the next record goes
  uint64_t sequence = 0;    // its number
  bool is_torn = false;     // after the end there is a part of a record
  bool is_closed = false;   // the last record says that its writer ended in peace
  bool is_continued = false;
  Status damage;  // EIO and where; the state is that before it
};
// Errors: what the system says; EINVAL (a newer format).
Result<Loaded> load_journal(Disk& disk, uint32_t number, std::optional<uint32_t> until = {});
// The commit that a journal begins with. Errors: EIO (it has no base).
Result<uint32_t> first_commit_of(Disk& disk, uint32_t number);
// The journals there are, ascending.
Result<std::vector<uint32_t>> list_journals(Disk& disk);

// The state as a checkpoint or the last commit has it: from the last journal that begins with it or
// before it. Errors: EIO (damage before it), ENOENT.
Result<State> load_commit(Disk& disk, uint32_t commit);

// The graves that a held state needs, one a block, ascending: of a block that died, came back by a
// rollback and died again the last counts; one that lives has none. Errors: ENOMEM.
Result<MappedArray<Grave>> needed_graves(const State& state, const std::vector<uint32_t>& held);

// Writes the base of a new journal, which is not yet durable. 0 or -errno.
int write_base(Journal& journal, const State& state, const MappedArray<Grave>& graves);

}  // namespace outcore::versioned
