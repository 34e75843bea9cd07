// JournalChain: the journals of an open pool: the last one, to which records are appended, and
// those before it that held commits are still read from. It gives the chain a new journal, which
// begins with a base, when the last one has become long.
//
// One thread at a time, under the pool's mutex.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "checkpoints/pool/journal.h"
#include "checkpoints/pool/open_pool.h"
#include "checkpoints/pool/state.h"
#include "core/base/assert.h"

namespace outcore::versioned {

struct JournalFile {
  uint32_t number = 0;
  uint32_t first_commit = 0;
};

class JournalChain {
 public:
  // `delta_bytes_min`: as in PoolOptions.
  JournalChain(OpenPool& pool, uint64_t delta_bytes_min)
      : pool_(pool), delta_bytes_min_(delta_bytes_min) {}

  // Once, before anything else: writes the first journal of a new pool; or goes on with the last of
  // these `files`, which was loaded and is durable.
  Status found(const State& state);
  void resume(std::vector<JournalFile> files, std::unique_ptr<File> last, const Loaded& loaded);

  // Appends a record as Journal::append() does. If the disk is full, the space of free blocks goes
  // back to it, and the record is tried again. 0 or -errno.
  int append(RecordType type, uint32_t commit, std::span<const std::byte> payload,
             Journal::How how);
  // Notes that the pool was closed properly.
  void append_closed();
  // Nobody can know whether the last record is there.
  bool is_broken() const {
    OC_CHECK(journal_ != nullptr);
    return journal_->is_broken();
  }
  // If the last journal has become long: writes a new one, which begins with the state of the last
  // commit, read from the old one. If that fails, the next commits try again.
  void renew_base();
  // Removes journals that no held commit is read from.
  void drop_unneeded();

 private:
  Result<std::unique_ptr<Journal>> write_journal(uint32_t number, const State& state,
                                                 const MappedArray<Grave>& graves,
                                                 uint64_t sequence);
  Status write_new_base();

  OpenPool& pool_;
  const uint64_t delta_bytes_min_;
  uint64_t pool_id_ = 0;
  std::unique_ptr<Journal> journal_;  // the last
  uint64_t base_bytes_ = 0;
  uint64_t base_retry_ = 0;  // a new base is tried again when the journal is this long
  std::vector<JournalFile> files_;
};

}  // namespace outcore::versioned
