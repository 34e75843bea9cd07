// SimDisk: a disk in memory that remembers what is not yet durable, so that power can be lost
// between any two operations.
//
// What a file has for sure is what it had at its last sync. Since then every sector of 512 bytes
// may have any of the contents that it was given, the file any of its sizes, and each name that was
// made, changed or removed since the folder's last sync may have been or not. after_power_loss()
// draws one of these states.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "checkpoints/pool/disk.h"
#include "core/tests/sim/random.h"

namespace outcore::versioned_test {

using versioned::Disk;
using versioned::File;

using Sector = std::array<std::byte, 512>;
inline constexpr uint64_t kPiece = 4096;  // space is taken and given back in such pieces

// What is stored under a name, and the past that a loss of power may bring back.
struct SimInode {
  std::map<uint64_t, std::vector<Sector>> sectors;  // versions; the first is durable, the last now
  std::vector<uint64_t> sizes = {0};
  // Sectors that the next sync stores. One that fails forgets them: as in Linux, where what could
  // not be written is held to be clean.
  std::set<uint64_t> dirty;
  std::set<uint64_t> space;  // the pieces of 4 KiB for which there is space
};

struct SimFaults {
  uint64_t enospc_permille = 0;    // of transfers that need space
  uint64_t eio_permille = 0;       // of writes
  uint64_t sync_eio_permille = 0;  // of syncs
  // Bugs to be found: these syncs do nothing.
  bool drops_data_sync = false, drops_journal_sync = false, drops_folder_sync = false;
};

class SimDisk final : public Disk {
 public:
  explicit SimDisk(uint64_t seed) : random_(seed) {}

  // Called before each operation that changes something, with what it is.
  std::function<void()> before_change;
  SimFaults faults;
  uint64_t operation_count = 0;
  bool cannot_list = false;
  uint64_t capacity_bytes = UINT64_MAX;  // of all files; where it is given, space is counted
  bool is_punching = false;              // in before_change: a lock of writers may be held

  // What could be found after a loss of power now.
  std::shared_ptr<SimDisk> after_power_loss(uint64_t seed) const;
  // The same disk, for another process: what the one that died still does is not seen.
  std::shared_ptr<SimDisk> after_kill() const;
  // Flips a bit of a file. False: it is empty.
  bool flip_bit(const std::string& file, uint64_t seed);
  uint64_t size_of(const std::string& file) const;
  uint64_t used_bytes() const;  // of the capacity
  bool has(const std::string& file) const { return names_.contains(file); }

  std::string name() const override { return "sim"; }
  Result<std::unique_ptr<File>> open(const std::string& file, Mode mode, bool is_heap) override;
  Result<std::vector<std::string>> list() override;
  int rename(const std::string& from, const std::string& to) override;
  int unlink(const std::string& file) override;
  int sync_folder() override;
  Status lock_writer() override { return {}; }
  int hold(uint32_t commit) override;
  void unhold(uint32_t commit) override { held_.erase(commit); }
  bool claim(uint32_t commit) override { return !held_by_others_.contains(commit); }
  void unclaim(uint32_t) override {}
  std::vector<uint32_t> held_by_others() override {
    return {held_by_others_.begin(), held_by_others_.end()};
  }
  std::string who_holds(uint32_t) override { return "somebody"; }
  std::set<uint32_t> held_by_others_;

 private:
  friend class SimFile;
  // A change of names that is not yet durable.
  struct NameChange {
    std::string from, to;  // to empty: removed; from empty: made
    std::shared_ptr<SimInode> inode;
  };
  using Names = std::map<std::string, std::shared_ptr<SimInode>>;

  void changing() {
    ++operation_count;
    if (before_change) before_change();
  }
  int take_space(SimInode& inode, uint64_t offset, uint64_t size_bytes) const;
  static void carry_out(Names& names, const NameChange& change);

  sim::Random random_;
  Names names_;
  Names durable_names_;
  std::vector<NameChange> pending_;
  std::set<uint32_t> held_;
};

}  // namespace outcore::versioned_test
