// ArraysDrain: copies finished arrays of one container to another in the background: from fast
// storage near the program to mass storage (pMAP's drain).
//
//   auto drain = outcore::ArraysDrain::start("/pmem/run.oca", "/archive/run.oca",
//                                            {.may_remove = true});
//   …                                              // the program continues
//   if (auto s = drain->wait(); !s) …              // all arrays are copied, durable and verified
//
// An array is in the other container completely and verified, or not at all. An array that is there
// already with the same content is not copied again, so an interrupted drain can be repeated.
// Arrays that were removed from the first container are still found there: the container knows
// where they went, and loads, views and lists follow.
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
  std::vector<std::string> names;  // empty: all finished arrays
  uint64_t bytes_per_second = 0;   // limit; 0: none
  // Remove the arrays from the first container when all are copied; their space is reused.
  bool may_remove = false;
  Runtime* runtime = nullptr;  // for stores that are not files; nullptr: starts its own
};

struct DrainProgress {
  uint64_t arrays = 0, arrays_done = 0;  // includes arrays that were there already
  uint64_t bytes = 0, bytes_done = 0;    // of elements
  std::string array;                     // the array that is being copied
};

// Move-only. wait_for(), progress() and cancel(): any thread.
class ArraysDrain {
 public:
  // Opens both containers: the first for reading (other processes may add arrays meanwhile, but
  // must not change arrays in place or replace the container), the second for adding, as one
  // process. Errors: those of Arrays::open; EINVAL (both are the same container); ENOENT (no such
  // array; the message names the nearest).
  static Result<ArraysDrain> start(const std::string& from, const std::string& to,
                                   const DrainOptions& options = {});
  ArraysDrain(ArraysDrain&&) noexcept;
  ArraysDrain& operator=(ArraysDrain&&) noexcept;
  ~ArraysDrain();  // cancel() and wait(); the error is lost

  // Waits until all arrays are copied, or until the first error, which ends the drain: ECANCELED;
  // EIO (verification failed); EEXIST (the other container has an array of that name with other
  // content: remove it); EBUSY (all are copied, but a process writes the first container, so
  // nothing was removed: drain again); errors of the stores. Arrays that were finished before stay.
  Status wait();
  // Waits for the end for at most so many milliseconds; true: it has ended, and wait() returns at
  // once.
  bool wait_for(uint64_t milliseconds) const;
  DrainProgress progress() const;
  void cancel();  // ends it soon; finished arrays stay

 private:
  struct Impl;
  explicit ArraysDrain(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outcore
