// ArraysAccess: what a drain may do with a container and programs may not.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "arrays/container/arrays_impl.h"
#include "outcore/arrays.h"

namespace outcore::arrays {

// The attribute of a container that says where its arrays were drained to: one URI a line.
inline constexpr const char* kDrainedTo = "drained_to";

struct ArraysAccess {
  // Looks in this container alone. ENOENT names the array whose name comes nearest.
  static Result<Entry> find(const Arrays& in, const std::string& name);
  // The finished arrays of this container alone: their names and the bytes of their elements.
  static std::vector<std::pair<std::string, uint64_t>> own(const Arrays& in);
  // Allocates an array like `as`, with the same attributes and stamp.
  static Status alloc_as(Arrays& out, const Entry& as);
  // Drops cached bytes of the array: the next read of it comes from the storage.
  static Status forget(Arrays& out, const std::string& name);
  // Removes those of the named arrays that `gone` has, too, finished and with the same content, and
  // notes the URI of `gone`: both in one durable step.
  static Status leave_for(Arrays& out, const Arrays& gone, const std::vector<std::string>& names,
                          const std::string& uri);
  static Status check_open(const Arrays& of, const std::string& attempted) {
    return of.impl_->check_open(attempted);
  }
  static Runtime* runtime(const Arrays& of) { return of.impl_->runtime; }
  static bool is_same(const Arrays& a, const Arrays& b);
  // The URI, changed so that it means the same in another working directory.
  static std::string absolute(const std::string& uri);
};

}  // namespace outcore::arrays
