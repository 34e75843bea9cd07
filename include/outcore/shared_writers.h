// SharedWriters: one process's part in a store that several processes write at the same time.
//
// Each process writes exact ranges of bytes, from any thread. What must not happen at the same time
// is protected by locks between the processes. If a process ends, or is silent for as long as its
// lease lasts (15 s), all processes lose the store, because nobody can finish what that process was
// doing, and it must not go on itself. Calls then fail, and all later writes are refused (ESTALE).
#pragma once

#include <memory>
#include <string>

#include "outcore/store.h"

namespace outcore {

class SharedWriters {
 public:
  virtual ~SharedWriters() = default;

  // The store. Its discard() zeroes exactly the given range; size_bytes() is the size when lock()
  // last returned.
  virtual Store& store() = 0;

  // Locks `what` for this process until unlock(). Waits up to a minute if `may_wait`. REQUIRES: for
  // each name, one thread at a time. Errors: EAGAIN (it is locked, and `may_wait` is false),
  // ETIMEDOUT (the message says who has the lock), EIO (the process that had it has ended), ESTALE.
  virtual Status lock(const std::string& what, bool may_wait) = 0;
  virtual void unlock(const std::string& what) = 0;
  // The lock that must be held while the store grows.
  static constexpr const char* kCatalogLock = "catalog";

  // Says whether this process writes; the others count it among the writers until it says
  // otherwise.
  virtual Status be_writer(bool is_one) = 0;
  // Whether other processes write. REQUIRES: kCatalogLock is locked. Error: EIO (one of them has
  // ended).
  virtual Result<bool> are_other_writers() = 0;
  // Call it when this process has nothing more to write. Returns when each writer has given a sign
  // of life since the call, has nothing more to write either, or has ended; at the latest when a
  // lease has expired. Error: EIO (one of them has ended).
  virtual Status hear_of_others() = 0;
  // The last call.
  virtual void leave() = 0;

  // Explains the -errno of a transfer.
  virtual Error explain(int error, const std::string& attempted) = 0;
};

// Opens the store that the URI names as one of several writers. Errors: ENOTSUP (this kind has one
// writer; the message says which have several), EINVAL (the options do not open it for writing),
// EBUSY (a process has it alone), and those of open_store().
Result<std::shared_ptr<SharedWriters>> open_shared_store(const std::string& uri,
                                                         const OpenOptions& options);
// Whether stores of the URI's kind can have several writers.
bool can_be_shared(const std::string& uri);

}  // namespace outcore
