// ArraysDrain: finished arrays of one container travel to another, in the background: from fast
// storage near the program to mass storage (pMAP's drain).
//
//   auto drain = outcore::ArraysDrain::start("/pmem/run.oca", "/archive/run.oca", {.may_remove =
//   true}); …                                        // the program goes on if (auto s =
//   drain->wait(); !s) …        // everything is there, durably, and was read again
//
// An array is in the other container, whole and verified, or it is not. What is there already, of
// the same content, is not copied again: a drain that was ended goes on where it was, by arrays.
// What was removed here is found all the same: the container knows where it has gone, and loads,
// views and lists follow.
//
// After pMAP (Logan et al., HPDC 2021).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore {

class Runtime;

struct DrainOptions {
  std::vector<std::string> names;  // empty: all that are finished
  uint64_t bytes_per_second = 0;   // at most; 0: as fast as it goes
  // When all are there they are removed here, and their space is used again.
  bool may_remove = false;
  Runtime* runtime = nullptr;  // for stores that are no files; none: one of its own
};

struct DrainProgress {
  uint64_t arrays = 0, arrays_done = 0;  // those that were there already are done
  uint64_t bytes = 0, bytes_done = 0;    // of elements
  std::string array;                     // that is on its way
};

// Move-only. wait_for(), progress() and cancel(): any thread.
class ArraysDrain {
 public:
  // Both containers are opened at once: the first for reading (others may add arrays meanwhile;
  // none may be changed in place, nor the container replaced), the other for adding, as one
  // process. Errors: those of Arrays::open; EINVAL (both are one); ENOENT (a name, with the
  // nearest).
  static Result<ArraysDrain> start(const std::string& from, const std::string& to,
                                   const DrainOptions& options = {});
  ArraysDrain(ArraysDrain&&) noexcept;
  ArraysDrain& operator=(ArraysDrain&&) noexcept;
  ~ArraysDrain();  // cancel() and wait(), whose error is lost

  // Until all are there, or the first error, which ends it: ECANCELED; EIO (what was read again is
  // not what was written); EEXIST (there is another array of the name, of other content: remove
  // it); EBUSY (all are there, but somebody writes the first container, so nothing was removed:
  // drain again); those of the stores. What had been finished stays.
  Status wait();
  // Whether it has ended within so many milliseconds; then wait() returns at once.
  bool wait_for(uint64_t milliseconds) const;
  DrainProgress progress() const;
  void cancel();  // soon; what had been finished stays

 private:
  struct Impl;
  explicit ArraysDrain(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outcore
