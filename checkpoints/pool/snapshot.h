// Snapshot: the objects of a pool as one commit contains them, for reading. It holds the commit:
// while it exists, no writer of this or another process frees its blocks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoints/pool/chunk_reader.h"
#include "checkpoints/pool/read_commits.h"
#include "checkpoints/pool/state.h"

namespace outcore::versioned {

class Snapshot {
 public:
  // Opens the checkpoint `at` of a pool, or its last commit (an empty name), beside a writer in
  // another process. Errors: ENOENT (no such checkpoint), EBUSY (it is just being removed), EIO
  // (damage).
  static Result<std::shared_ptr<Snapshot>> open(std::shared_ptr<Disk> disk, const std::string& at);
  // The same in the process of the writer, which has added the commit to `read_commits`: the
  // snapshot removes it when it ends.
  static Result<std::shared_ptr<Snapshot>> open_counted(std::shared_ptr<Disk> disk, uint32_t commit,
                                                        std::shared_ptr<ReadCommits> read_commits);
  // A commit that another process holds, as long as it does: a forked child, of its parent. Errors:
  // EBUSY (it is just being freed), ENOENT (it has been), EIO (damage).
  static Result<std::shared_ptr<Snapshot>> open_commit(std::shared_ptr<Disk> disk, uint32_t commit);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  uint32_t commit() const { return state_.commit; }
  const Disk& disk() const { return *disk_; }
  uint32_t chunk_bytes() const { return state_.chunk_bytes; }
  const std::vector<Checkpoint>& checkpoints() const { return state_.checkpoints; }
  const std::map<uint32_t, StateObject>& objects() const { return state_.objects; }
  // nullptr: there is none. The result lives as long as the snapshot.
  const StateObject* find(const std::string& object) const;

  // As ChunkReader::read. REQUIRES: the range is inside of the object. Any thread; the fault path.
  int read(const StateObject& object, uint64_t offset, std::span<std::byte> into) {
    return reader_->read(*object.map, object.name.c_str(), offset, into);
  }
  void transfer(const StateObject& object, std::span<StoreRequest> batch) {
    reader_->transfer(*object.map, object.name.c_str(), batch);
  }
  File& data() { return *data_; }
  std::string last_failure() const { return last_failure_.text(); }
  // What of the pool, beside this commit, could not be read; empty: everything could.
  const std::string& remark() const { return remark_; }

 private:
  explicit Snapshot(std::shared_ptr<Disk> disk) : disk_(std::move(disk)), folder_(disk_->name()) {}
  Status load(uint32_t commit);
  Status open_data();

  const std::shared_ptr<Disk> disk_;
  const std::string folder_;
  State state_;
  std::unique_ptr<File> data_;
  IoFailure last_failure_;
  std::unique_ptr<ChunkReader> reader_;
  std::shared_ptr<ReadCommits> read_commits_;
  uint32_t held_ = 0;
  bool is_holding_ = false;
  std::string remark_;
};

}  // namespace outcore::versioned
