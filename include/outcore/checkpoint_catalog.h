// Checkpoint catalog: the checkpoints of a versioned: pool, or those noted with an rbd:// image
// (docs/reference/stores.md): which there are, and what is done with them from outside of the
// programs that make them. Any thread.
//
// A pool has one writer at a time. Whoever lists or verifies looks beside it; what changes
// checkpoints is refused with EBUSY and the writer's name, unless the writer is this process.
// To read a checkpoint, open versioned:FOLDER?object=NAME&at=CHECKPOINT (outcore/store.h), or what
// uri_of_checkpoint() says. Of images: a checkpoint is a snapshot of each of its images; the one
// that the URI names has its note, and is its writer's alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore {

struct CheckpointInfo {
  std::string name, comment;
  uint32_t number = 0;      // ascends in the order in which they were made
  int64_t time_s = 0;       // since 1970, UTC
  uint64_t size_bytes = 0;  // of its objects together
  uint64_t only_bytes = 0;  // what its removal alone would give back; 0 of images: not known
};

// Ascending by number. Errors: EINVAL (no versioned: URI, no pool there), EIO (damage).
Result<std::vector<CheckpointInfo>> list_checkpoints(const std::string& uri);

struct CheckpointObject {
  std::string name;
  uint64_t size_bytes = 0;
  std::string uri;  // to map it as it is now
};
// The objects as the checkpoint has them; as the last commit has them if the name is empty.
// Errors: as list_checkpoints(), ENOENT.
Result<std::vector<CheckpointObject>> list_objects(const std::string& uri,
                                                   const std::string& checkpoint = {});

// Commits what the pool's stores hold, and holds it under a name of 1 to 255 bytes. Pages that a
// region has not written back are not in it: Region::flush() first. Returns its number.
// Errors: EEXIST, EINVAL (the name), EBUSY, what the disk said.
Result<uint32_t> make_checkpoint(const std::string& uri, const std::string& name,
                                 const std::string& comment = {});

// All of them or none. Errors: ENOENT, EBUSY (also: somebody reads one, and who; not of images).
Status remove_checkpoints(const std::string& uri, const std::vector<std::string>& names);
Status rename_checkpoint(const std::string& uri, const std::string& from, const std::string& to);

// An object is gone from the pool as it is now, durably; checkpoints that have it keep it.
// REQUIRES: no region of this process is on it. Errors: ENOENT, EBUSY, what the disk said; ENOTSUP
// (of images: remove_store()).
Status remove_object(const std::string& uri, const std::string& object);

// All objects become what they are in the checkpoint, durably; later checkpoints stay. REQUIRES: no
// region of this process is on the pool: its pages would be of another time. Of images:
// interrupted, none of them opens until it is done again to the end.
Status roll_back(const std::string& uri, const std::string& name);

// A new image that begins as the object was, and shares with it what neither writes: for a job that
// goes on from a checkpoint while another goes on from the last. Errors: ENOENT, EEXIST, EXDEV (of
// another Ceph pool), ENOTSUP (of a versioned: pool; export it).
Status clone_checkpoint(const std::string& uri, const std::string& name, const std::string& object,
                        const std::string& to);

// Which checkpoints are kept: the last so many; of each of the last so many hours and days (UTC)
// that have any, the newest. What no rule names goes.
struct Retention {
  uint32_t last = 0, hourly = 0, daily = 0;
};
// What would go, ascending. EINVAL: a retention that keeps nothing.
Result<std::vector<std::string>> choose_to_prune(const std::vector<CheckpointInfo>& checkpoints,
                                                 const Retention& retention);

// A chunk that is not what was written.
struct DamagedChunk {
  std::string object;
  std::string checkpoint;  // empty: the last commit
  uint64_t offset = 0;     // in the object, bytes
  std::string why;
};
// Reads every chunk that a checkpoint or the last commit refers to, each once. Empty: all is as it
// was written. At most 1000 are told. Errors: as list_checkpoints(), EBUSY.
Result<std::vector<DamagedChunk>> verify_checkpoints(const std::string& uri);

// The URI of an object of a checkpoint, for open_store(). Errors: as list_checkpoints().
Result<std::string> uri_of_checkpoint(const std::string& uri, const std::string& checkpoint,
                                      const std::string& object);

}  // namespace outcore
