// CutMember: who keeps something about a region's bytes in ordinary memory, and must bring it into
// the region when those bytes become part of a checkpoint (persistent heaps; decision 0013).
//
// One thread calls, in this order: begin_cut(); then the moment is looked for; leave_cut(). If it
// was found, end_cut() follows; in between anything may happen but another cut.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore {

class CutMember {
 public:
  virtual ~CutMember() = default;

  // Writes what it keeps into the region, and holds off whoever would change it. Errors: those of
  // the write; EBUSY (it is in another checkpoint); then nothing is held.
  virtual Status begin_cut() = 0;
  // Nobody is held off any more. REQUIRES: begin_cut() succeeded.
  virtual void leave_cut(bool is_found) = 0;
  // The first bytes of the store with which it counts as closed, and those while it goes on: of
  // this cut (is_adopted), or as before. REQUIRES: between begin_cut() and end_cut().
  virtual std::vector<std::byte> closed_header() const = 0;
  virtual std::vector<std::byte> open_header(bool is_adopted) const = 0;
  // Adopted: the store has open_header(true). Not adopted: it is as if there had been no cut, but
  // space that a header in the store may still name is not used again (may_be_named).
  virtual Status end_cut(bool is_adopted, bool may_be_named) = 0;

  virtual std::string name_of() const = 0;  // for messages
};

}  // namespace outcore
