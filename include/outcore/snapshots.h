// Snapshots: named copies of a store's bytes at earlier moments, and short notes that are kept with
// the store. A checkpoint of regions on such stores is a snapshot of each, taken at one moment
// (outcore/checkpoint.h).
//
// Functions return 0 or -errno. Any thread, but one call at a time; never on the fault path.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace outcore {

class Snapshots {
 public:
  virtual ~Snapshots() = default;

  // State that the checkpoints of this store share while it is open. Only they use it.
  std::shared_ptr<void> catalog_state;

  // True if the store is open for writing, and not opened as one of its snapshots.
  virtual bool can_snapshot() const = 0;

  // The cluster that keeps the store. One checkpoint can contain stores of one cluster only.
  virtual std::string cluster() const = 0;
  // The URI without parameters ("rbd://POOL/IMAGE"), and the parameters with which all stores of
  // the cluster are opened ("conf=/etc/ceph/ceph.conf&id=me", or nothing).
  virtual std::string place() const = 0;
  virtual std::string parameters() const = 0;
  // The parameters for opening a store that holds a copy which belongs to this store and is kept as
  // long as this store.
  virtual std::string copy_parameters() const { return parameters(); }

  // Makes a snapshot of the bytes that write() has stored so far. All or nothing. Error: -EEXIST.
  virtual int snapshot(const std::string& name) = 0;
  virtual int remove_snapshot(const std::string& name) = 0;  // -ENOENT
  virtual int list_snapshots(std::vector<std::string>* names) = 0;
  // Restores the bytes and the size of the snapshot. If it is interrupted, the store is a mixture
  // of both. REQUIRES: no byte of the store is in memory or being transferred.
  virtual int roll_back(const std::string& name) = 0;
  // Creates a store at `place` with the bytes of the snapshot, without notes. The two share space
  // as long as neither is written. Error: -EEXIST.
  virtual int clone(const std::string& name, const std::string& place) = 0;

  // Notes are durable when the call returns. A note is written completely or not at all.
  virtual int note(const std::string& key, const std::string& text) = 0;
  virtual int remove_note(const std::string& key) = 0;  // -ENOENT
  virtual int list_notes(const std::string& prefix, std::map<std::string, std::string>* notes) = 0;
};

}  // namespace outcore
