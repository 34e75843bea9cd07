// Snapshots: a store's bytes as they were, under names, beside what is written to it afterwards;
// and short notes kept with it. Checkpoints of regions on such stores are their snapshots, taken at
// one moment (outcore/checkpoint.h).
//
// All functions return 0 or -errno. Any thread, but one at a time; none on the fault path.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace outcore {

class Snapshots {
 public:
  virtual ~Snapshots() = default;

  // Checkpoints keep here what they share as long as the store is open. Theirs alone.
  std::shared_ptr<void> catalog_state;

  // It is open for writing, and not as a snapshot has it.
  virtual bool can_snapshot() const = 0;

  // Which cluster keeps the store: stores of one cluster can be in one checkpoint.
  virtual std::string cluster() const = 0;
  // The URI without parameters ("rbd://POOL/IMAGE"), and the parameters that any store of the
  // system is opened with ("conf=/etc/ceph/ceph.conf&id=me", or nothing).
  virtual std::string place() const = 0;
  virtual std::string parameters() const = 0;
  // Those that a store is opened with which holds a copy that belongs to this one: as long as this
  // one is kept, that is.
  virtual std::string copy_parameters() const { return parameters(); }

  // What write() has stored so far, under a name. Whole or not at all. -EEXIST.
  virtual int snapshot(const std::string& name) = 0;
  virtual int remove_snapshot(const std::string& name) = 0;  // -ENOENT
  virtual int list_snapshots(std::vector<std::string>* names) = 0;
  // The store is as it was then, its size, too; interrupted, it is some of both.
  // REQUIRES: nothing of it is in memory or being transferred.
  virtual int roll_back(const std::string& name) = 0;
  // A new store at `place`, which begins as the snapshot was, without notes, and shares with it
  // what neither writes. -EEXIST.
  virtual int clone(const std::string& name, const std::string& place) = 0;

  // Notes are durable when the call returns; each is there or not, whatever happens.
  virtual int note(const std::string& key, const std::string& text) = 0;
  virtual int remove_note(const std::string& key) = 0;  // -ENOENT
  virtual int list_notes(const std::string& prefix, std::map<std::string, std::string>* notes) = 0;
};

}  // namespace outcore
