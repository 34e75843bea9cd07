// Committing: a capability of stores in which what was written counts only once it is committed, by
// sync() or when the last of several stores that share a place is closed: closing tells nobody that
// it failed, so who unmaps the last region asks before. dynamic_cast<Committing*>(&store).
#pragma once

#include "outcore/result.h"

namespace outcore::store {

class Committing {
 public:
  // A region that writes the store is there. Any thread.
  virtual void begin_writing() = 0;
  // The last such region of the store is about to go; it has written everything. Commits, unless
  // regions of other stores will. An error: the region stays, and begin_writing() holds still,
  // unless `is_forced`: then what is not committed is lost, and the caller says so. Any thread.
  virtual Status end_writing(bool is_forced) = 0;
  // Why nothing that is written can be committed any more; success as long as it can. Any thread;
  // waits for nothing while it can.
  virtual Status can_commit() const = 0;

 protected:
  ~Committing() = default;
};

}  // namespace outcore::store
