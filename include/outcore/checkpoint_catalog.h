// Checkpoint catalog: lists, removes, verifies and restores the checkpoints of a versioned: pool,
// or those noted with an rbd:// image (docs/reference/stores.md), from any process. Any thread.
//
// A pool has one writer at a time. Listing and verifying work beside the writer; calls that change
// checkpoints fail with EBUSY and the writer's name, unless this process is the writer. To read a
// checkpoint, open versioned:FOLDER?object=NAME&at=CHECKPOINT (outcore/store.h), or the result of
// uri_of_checkpoint(). For images, a checkpoint is a snapshot of each of its images; the image that
// the URI names keeps the note of it, and only its writer may change it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore {

struct CheckpointInfo {
  std::string name, comment;
  uint32_t number = 0;      // ascending in the order in which they were made
  int64_t time_s = 0;       // since 1970, UTC
  uint64_t size_bytes = 0;  // of all its objects
  uint64_t only_bytes = 0;  // what removing only this one would give back; 0 for images: not known
};

// Ascending by number. Errors: EINVAL (not a versioned: URI, or no pool there), EIO (damage).
Result<std::vector<CheckpointInfo>> list_checkpoints(const std::string& uri);

struct CheckpointObject {
  std::string name;
  uint64_t size_bytes = 0;
  std::string uri;  // maps the object's current contents
};
// The objects of the checkpoint; without a name, those of the last commit. Errors: as
// list_checkpoints(), ENOENT.
Result<std::vector<CheckpointObject>> list_objects(const std::string& uri,
                                                   const std::string& checkpoint = {});

// Makes a checkpoint of what the pool's stores hold now, with a name of 1 to 255 bytes; returns its
// number. Pages that a region has not written back are not in it: call Region::flush() first.
// Errors: EEXIST, EINVAL (the name), EBUSY, errors of the disk.
Result<uint32_t> make_checkpoint(const std::string& uri, const std::string& name,
                                 const std::string& comment = {});

// Removes all of them or none. Errors: ENOENT, EBUSY (also if a process reads one of them, except
// images; the message says who).
Status remove_checkpoints(const std::string& uri, const std::vector<std::string>& names);
Status rename_checkpoint(const std::string& uri, const std::string& from, const std::string& to);

// Removes an object from the pool's current contents, durably; checkpoints that contain it keep it.
// REQUIRES: no region of this process is on it. Errors: ENOENT, EBUSY, errors of the disk; ENOTSUP
// (images: use remove_store()).
Status remove_object(const std::string& uri, const std::string& object);

// Restores all objects from the checkpoint, durably; later checkpoints stay. In a pool, all of the
// checkpoint is read first. REQUIRES: no region of this process is on the pool, because its pages
// would be out of date. Images: if it is interrupted, none of them opens until it has been repeated
// to the end. Errors: ENOENT; EIO (the checkpoint is damaged: nothing was changed).
Status roll_back(const std::string& uri, const std::string& name);

// Creates an image with the bytes of the object at the checkpoint; the two share space as long as
// neither is written. For a job that continues from a checkpoint while another continues from the
// last state. Errors: ENOENT, EEXIST, EXDEV (another Ceph pool), ENOTSUP (a versioned: pool: export
// it instead).
Status clone_checkpoint(const std::string& uri, const std::string& name, const std::string& object,
                        const std::string& to);

// Which checkpoints are kept: the last `last`; and the newest of each of the last `hourly` hours
// and `daily` days (UTC) that have any. All others are removed.
struct Retention {
  uint32_t last = 0, hourly = 0, daily = 0;
};
// The names to remove, ascending. EINVAL: the retention keeps nothing.
Result<std::vector<std::string>> choose_to_prune(const std::vector<CheckpointInfo>& checkpoints,
                                                 const Retention& retention);

// A chunk whose bytes are not what was written.
struct DamagedChunk {
  std::string object;
  std::string checkpoint;  // empty: the last commit
  uint64_t offset = 0;     // in the object, bytes
  std::string why;
};
// Reads each chunk that a checkpoint or the last commit refers to, once, and writes nothing: a pool
// that may not be written, or is a copy, is verified, too. Empty: no damage. Reports at most 1000
// chunks. Errors: as list_checkpoints(); EBUSY (its writer commits all the time, or a copy has got
// a writer meanwhile: try again).
Result<std::vector<DamagedChunk>> verify_checkpoints(const std::string& uri);
// Whether the newest journal of a pool ends within a record, as after a crash or when the file was
// cut short: where; empty: it does not, or cannot be read. Whoever opens the pool to write takes
// that part of a record away: ask before.
std::string find_torn_end(const std::string& uri);

// The URI of an object in a checkpoint, for open_store(). Errors: as list_checkpoints().
Result<std::string> uri_of_checkpoint(const std::string& uri, const std::string& checkpoint,
                                      const std::string& object);

}  // namespace outcore
