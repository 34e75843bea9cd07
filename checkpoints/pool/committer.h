// Committer: makes a pool's changes durable: the cut, the data, the record, and what can be freed
// after it. See Pool for what commit() and sync() promise.
//
// Any thread but the fault path. A commit holds the pool's mutex to its end, and closes the gate
// while it collects what has changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "checkpoints/pool/journal_chain.h"
#include "checkpoints/pool/open_pool.h"

namespace outcore::versioned {

inline constexpr size_t kCheckpointsMax = 100'000;

class Committer {
 public:
  Committer(OpenPool& pool, JournalChain& journals) : pool_(pool), journals_(journals) {}

  Result<uint32_t> commit(const std::string& name, const std::string& comment);
  // The same. REQUIRES: the mutex; the pool is usable, and the name free.
  Result<uint32_t> commit_locked(const std::string& name, const std::string& comment);
  int sync();
  Status sync_data();
  Status can_commit() const;
  void refuse_commits(const Error& why);

 private:
  struct Cut;
  int carry_out(Cut& cut, bool& is_lost);
  void make_cut(Cut& cut);
  void undo_cut(Cut& cut);
  int write_commit(Cut& cut);
  void settle(Cut& cut);

  OpenPool& pool_;
  JournalChain& journals_;
};

}  // namespace outcore::versioned
