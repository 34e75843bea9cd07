// Checkpoint: the contents of regions and of ordinary memory of a running program at one moment,
// kept in a versioned: pool (outcore/checkpoint_catalog.h), completely or not at all.
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
// The program continues meanwhile: its threads are stopped for milliseconds, in which recently
// written pages are frozen (CheckpointReport::pause_ns). The kernel's record of written pages
// proves which moment the checkpoint shows: docs/internals/decisions/0013-the-cut.md. If only
// certain states of the program make sense (between two steps), give it a function `quiesce` that
// brings the program to one.
//
// Regions on rbd:// images need no pool: their checkpoint is a snapshot of each image, noted with
// the first image, whose URI is used instead of the pool's, here and in the catalog.
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

// One part of a checkpoint. It only refers to the region or memory, which must outlive the call.
class CheckpointPart {
 public:
  // A region. If its store is an object of the pool, the checkpoint costs what has changed. The
  // bytes of any other store (a file, far memory) are copied into the pool's object `name`, which
  // must then be given; only what differs from the object's contents is written.
  CheckpointPart(const Region& region, std::string name = {})
      : name_(std::move(name)), region_(&region) {}
  // A persistent heap, as a region. In the checkpoint it is closed and complete, and can be opened
  // there. While the checkpoint is made (until resume(), or the return) no other thread may
  // allocate or free in the heap, nor create or destroy named objects; they may write to existing
  // objects. Until the return, flush(), copy() and close() fail with EBUSY.
  CheckpointPart(PersistentCore& heap, std::string name = {})
      : name_(std::move(name)), region_(&heap.region()), member_(&heap.cut_member()) {}
  template <typename Heap>  // PersistentHeap, whose header needs Boost
  requires requires(Heap& heap) {
    { heap.core() } -> std::same_as<PersistentCore&>;
  }
  CheckpointPart(Heap& heap, std::string name = {}) : CheckpointPart(heap.core(), name) {}
  // Ordinary memory, which is kept in the pool's object `name`. It is copied twice while threads
  // are stopped: use a region for more than about 100 MiB.
  CheckpointPart(std::string name, void* memory, uint64_t size_bytes)
      : name_(std::move(name)), memory_(static_cast<std::byte*>(memory)), size_bytes_(size_bytes) {}
  template <typename T>
  requires std::is_trivially_copyable_v<T> CheckpointPart(std::string name, T& value)
      : CheckpointPart(std::move(name), &value, sizeof(T)) {}

  const std::string& name() const { return name_; }
  const Region* region() const { return region_; }  // nullptr: this part is memory
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
  // versioned:FOLDER, created if it does not exist, or rbd://POOL/IMAGE; empty: the pool of the
  // regions.
  std::string pool;
  std::string comment;  // at most 4 KiB
  // Brings the program to a state of its choice, in which it does not write to the parts until
  // resume() is called; then no thread is stopped. quiesce() is called in the calling thread,
  // possibly several times. Each successful call is followed by resume(), called by a thread of
  // Outcore. An error ends the attempt. Signals are blocked in both, and in threads that they
  // start.
  std::function<Status()> quiesce;
  std::function<void()> resume;
  // By a signal; if false, a program that writes without end gets EAGAIN.
  bool may_stop_threads = true;
};

struct CheckpointReport {
  uint32_t number = 0;           // of the checkpoint; ascends
  uint64_t pause_ns = 0;         // from the first page frozen to the release of the last thread
  uint64_t seconds_ns = 0;       // the whole call
  uint64_t precopied_bytes = 0;  // written pages that were stored while the program ran
  uint64_t frozen_bytes = 0;     // the rest, frozen and then stored
  uint64_t frozen_pages = 0;     // how many pages that were
  uint64_t copied_bytes = 0;     // memory parts, and regions of other stores: bytes that differed
  uint64_t stopped_threads = 0;  // 0: no thread had to be stopped
};

// Makes a checkpoint of all parts at one moment; it is durable when the call returns. Other objects
// of the pool are in it as their stores hold them. One at a time in a runtime; a second call waits.
// Any thread that holds no lock that quiesce() needs. All regions must belong to one runtime.
// Errors: EINVAL (no pool, or two; a name that is missing or given twice), EEXIST (a checkpoint of
// that name), EBUSY (a part is pinned and written, or locked in memory; or another process writes
// the pool), EAGAIN (no moment was found), ENOMEM (the memory parts do not fit in the budget),
// EPERM (a forked child), errors of quiesce() and the disk. After any error there is no checkpoint,
// and no byte of the program has changed.
Result<CheckpointReport> checkpoint(const std::string& name, std::span<const CheckpointPart> parts,
                                    const CheckpointOptions& options = {});
inline Result<CheckpointReport> checkpoint(const std::string& name,
                                           std::initializer_list<CheckpointPart> parts,
                                           const CheckpointOptions& options = {}) {
  return checkpoint(name, std::span<const CheckpointPart>(parts.begin(), parts.size()), options);
}

// The checkpoint that restart() has restored. Any thread.
class Restart {
 public:
  const CheckpointInfo& checkpoint() const { return checkpoint_; }
  // The URI to map in order to continue with an object.
  std::string uri_of(const std::string& object) const;
  // ENOENT: the checkpoint has no such object; the message names the nearest.
  Result<uint64_t> size_of(const std::string& object) const;
  // Reads the bytes of an object of the checkpoint. EINVAL: the object has another size.
  Status read(const std::string& object, std::span<std::byte> into) const;
  template <typename T>
  requires std::is_trivially_copyable_v<T> Status read(const std::string& object, T& value)
  const { return read(object, {reinterpret_cast<std::byte*>(&value), sizeof(T)}); }
  // Writes the object's bytes into a region of another store, which must have the same size.
  Status restore(const std::string& object, Region& region) const;

 private:
  friend Result<Restart> restart(const std::string& pool, const std::string& name);
  Restart() = default;
  std::string pool_;
  CheckpointInfo checkpoint_;
  std::vector<CheckpointObject> objects_;
};

// Restores all objects of the pool from the checkpoint; without a name, from the newest. REQUIRES:
// no region of this process is on the pool. To read a checkpoint while its writer continues, map
// uri_of_checkpoint() read-only instead. Errors: ENOENT (no pool, no checkpoint, or none of that
// name), EBUSY (another process writes the pool), EIO.
Result<Restart> restart(const std::string& pool, const std::string& name = {});

}  // namespace outcore
