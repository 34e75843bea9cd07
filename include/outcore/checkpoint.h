// Checkpoint: what a running program holds, regions and ranges of ordinary memory together, as it
// was at one moment; kept in a versioned: pool (outcore/checkpoint_catalog.h), whole or not at all.
//
//   auto grid = runtime.map("versioned:/scratch/run?object=grid", {…}).value();
//   uint64_t step = 0;
//   …
//   auto made = outcore::checkpoint("step 100", {grid, {"step", step}});
//
//   // In the next process, which may have another budget, page size and number of threads:
//   auto last = outcore::restart("versioned:/scratch/run");  // ENOENT: none yet, begin anew
//   last->read("step", step);                                // memory ranges come back as bytes,
//   auto grid = runtime.map(last->uri_of("grid"), {…});      // regions by being mapped again
//
// The program goes on meanwhile: its threads are held for milliseconds, in which what it has just
// written is taken out of its hands (CheckpointReport::pause_ns). Which moment it is, the kernel's
// record of written pages proves: docs/internals/decisions/0013-the-cut.md. A program that has
// states that only it can tell apart (between two steps) gives a function that brings it to one.
//
// Regions on rbd:// images need no pool: a checkpoint of theirs is a snapshot of each image, noted
// with the first one, whose URI takes the pool's place here and in the catalog.
//
// After NVMalloc's ssdcheckpoint (IPDPS 2012) and Metall's snapshots (Parallel Computing 2021).
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "outcore/checkpoint_catalog.h"
#include "outcore/persistent_core.h"
#include "outcore/region.h"
#include "outcore/result.h"

namespace outcore {

// One thing that is in a checkpoint. Refers to it: the region or the memory must outlive the call.
class CheckpointPart {
 public:
  // A region. Of an object of the pool: costs what changed. Of any other store (a file, far
  // memory): its bytes are copied into the pool's object `name`, which it then needs, and only what
  // differs from what that holds is written.
  CheckpointPart(const Region& region, std::string name = {})
      : name_(std::move(name)), region_(&region) {}
  // A persistent heap, as a region; in the checkpoint it is closed and whole, and opens there.
  // While the checkpoint is made (until resume(), or the return) no other thread allocates or frees
  // in the heap, nor makes or ends named objects; they may write to those that there are.
  // flush(), copy() and close() are refused until the return (EBUSY).
  CheckpointPart(PersistentCore& heap, std::string name = {})
      : name_(std::move(name)), region_(&heap.region()), member_(&heap.cut_member()) {}
  template <typename Heap>  // PersistentHeap, whose header needs Boost
  requires requires(Heap& heap) {
    { heap.core() } -> std::same_as<PersistentCore&>;
  }
  CheckpointPart(Heap& heap, std::string name = {}) : CheckpointPart(heap.core(), name) {}
  // Ordinary memory, which becomes the pool's object `name`. It is copied while the threads are
  // held, twice over: for what is larger than some 100 MiB, a region is the place.
  CheckpointPart(std::string name, void* memory, uint64_t size_bytes)
      : name_(std::move(name)), memory_(static_cast<std::byte*>(memory)), size_bytes_(size_bytes) {}
  template <typename T>
  requires std::is_trivially_copyable_v<T> CheckpointPart(std::string name, T& value)
      : CheckpointPart(std::move(name), &value, sizeof(T)) {}

  const std::string& name() const { return name_; }
  const Region* region() const { return region_; }  // nullptr: memory
  CutMember* member() const { return member_; }     // the heap to which the region belongs
  std::byte* memory() const { return memory_; }
  uint64_t size_bytes() const { return size_bytes_; }  // of the memory

 private:
  std::string name_;
  const Region* region_ = nullptr;
  CutMember* member_ = nullptr;
  std::byte* memory_ = nullptr;
  uint64_t size_bytes_ = 0;
};

struct CheckpointOptions {
  std::string pool;     // versioned:FOLDER, made if there is none, or rbd://POOL/IMAGE; empty: that
                        // of the regions
  std::string comment;  // at most 4 KiB
  // Brings the program to a state of its choice, in which it writes nothing to the parts until
  // resume() is called: then no thread is stopped. Called in the thread that asks, perhaps several
  // times, each followed by resume(), which a thread of Outcore's calls. An error ends the attempt.
  // Signals are blocked in both, and in threads that they start.
  std::function<Status()> quiesce;
  std::function<void()> resume;
  bool may_stop_threads = true;  // by a signal; false: a program that never rests gets EAGAIN
};

struct CheckpointReport {
  uint32_t number = 0;      // of the checkpoint, ascending
  uint64_t pause_ns = 0;    // from the first page that was taken away to the last thread's release
  uint64_t seconds_ns = 0;  // of the whole
  uint64_t precopied_bytes = 0;  // written pages that were stored while the program ran
  uint64_t frozen_bytes = 0;     // those that were left, and taken away
  uint64_t frozen_pages = 0;
  uint64_t copied_bytes = 0;     // of memory, and of regions of other stores: what differed
  uint64_t stopped_threads = 0;  // 0: it was proved without
};

// One cut over all parts, durable when it returns. Other objects of the pool are in it as their
// stores hold them. One at a time in a runtime; a second one waits. Any thread that holds no lock
// that quiesce() needs. Regions of several runtimes cannot be parts of one checkpoint.
// Errors: EINVAL (no pool, two; a name that is missing, or given twice), EEXIST (a checkpoint of
// that name), EBUSY (a part is pinned and written, or locked in memory; another process writes the
// pool), EAGAIN (no moment was found), ENOMEM (memory parts larger than the budget has room for),
// EPERM (a forked child), what quiesce() and the disk said. After any of them there is no
// checkpoint, and no byte of the program has changed.
Result<CheckpointReport> checkpoint(const std::string& name, std::span<const CheckpointPart> parts,
                                    const CheckpointOptions& options = {});
inline Result<CheckpointReport> checkpoint(const std::string& name,
                                           std::initializer_list<CheckpointPart> parts,
                                           const CheckpointOptions& options = {}) {
  return checkpoint(name, std::span<const CheckpointPart>(parts.begin(), parts.size()), options);
}

// A checkpoint that the pool has been brought back to. Any thread.
class Restart {
 public:
  const CheckpointInfo& checkpoint() const { return checkpoint_; }
  // What to map to go on with an object.
  std::string uri_of(const std::string& object) const;
  // ENOENT: the checkpoint has no such object, and the nearest.
  Result<uint64_t> size_of(const std::string& object) const;
  // The bytes of an object as the checkpoint has them. EINVAL: of another size.
  Status read(const std::string& object, std::span<std::byte> into) const;
  template <typename T>
  requires std::is_trivially_copyable_v<T> Status read(const std::string& object, T& value)
  const { return read(object, {reinterpret_cast<std::byte*>(&value), sizeof(T)}); }
  // Writes the object's bytes into a region of another store, as large as it was.
  Status restore(const std::string& object, Region& region) const;

 private:
  friend Result<Restart> restart(const std::string& pool, const std::string& name);
  Restart() = default;
  std::string pool_;
  CheckpointInfo checkpoint_;
  std::vector<CheckpointObject> objects_;
};

// All objects of the pool become what they are in the checkpoint; without a name, in the newest.
// REQUIRES: no region of this process is on the pool. To look at a checkpoint while its writer goes
// on, map uri_of_checkpoint() read-only instead.
// Errors: ENOENT (no pool, no checkpoint, none of that name), EBUSY (another process writes), EIO.
Result<Restart> restart(const std::string& pool, const std::string& name = {});

}  // namespace outcore
