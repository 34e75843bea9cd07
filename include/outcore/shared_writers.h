// SharedWriters: a store that several processes write at once, of whom this is one.
//
// Each writes exact ranges of bytes, any thread; what must not be done at once is done under locks
// that processes take from each other. If one of them ends, or is silent for as long as its lease
// runs (15 s), all of them lose the store: what it was doing nobody can go on with, and it must
// not go on either. Those who ask hear of it; what anyone still writes is refused (ESTALE).
#pragma once

#include <memory>
#include <string>

#include "outcore/store.h"

namespace outcore {

class SharedWriters {
 public:
  virtual ~SharedWriters() = default;

  // Its discard() zeroes exactly the range, and its size is that of when lock() returned.
  virtual Store& store() = 0;

  // This process has what is called so, until unlock(). Waits for up to a minute if it may.
  // REQUIRES: one thread at a time for each name. Errors: EAGAIN (may not wait), ETIMEDOUT (who has
  // it), EIO (who had it has ended), ESTALE.
  virtual Status lock(const std::string& what, bool may_wait) = 0;
  virtual void unlock(const std::string& what) = 0;
  // The lock under which the store grows.
  static constexpr const char* kCatalogLock = "catalog";

  // Others count this one among those that write, until it says otherwise.
  virtual Status be_writer(bool is_one) = 0;
  // Whether others write. REQUIRES: kCatalogLock. EIO: one of them has ended.
  virtual Result<bool> are_other_writers() = 0;
  // Has nothing more to write, and returns once all who write have been heard of since, at most as
  // long as a lease runs: either they write on, or have nothing more to write, or have ended. EIO:
  // one has ended.
  virtual Status hear_of_others() = 0;
  // The last call.
  virtual void leave() = 0;

  // What a transfer's -errno means here.
  virtual Error explain(int error, const std::string& attempted) = 0;
};

// Opens the store that the URI names as one of several writers. Errors: ENOTSUP (the store has one
// writer: which have several), EBUSY (one has it alone), and those of open_store.
Result<std::shared_ptr<SharedWriters>> open_shared_store(const std::string& uri,
                                                         const OpenOptions& options);
// Whether stores of the URI's kind can have several writers.
bool can_be_shared(const std::string& uri);

}  // namespace outcore
