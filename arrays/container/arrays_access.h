// ArraysAccess: what a drain needs of containers that programs do not.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "arrays/container/arrays_impl.h"
#include "outcore/arrays.h"

namespace outcore::arrays {

// The container's attribute with where arrays have gone: URIs, a line each.
inline constexpr const char* kDrainedTo = "drained_to";

struct ArraysAccess {
  // In this container itself. ENOENT, with the nearest.
  static Result<Entry> find(const Arrays& in, const std::string& name);
  // Finished arrays of this container itself, by name, and the bytes of their elements.
  static std::vector<std::pair<std::string, uint64_t>> own(const Arrays& in);
  // Room for an array as that one: its attributes and its stamp, too.
  static Status alloc_as(Arrays& out, const Entry& as);
  // What is read of it next comes from the storage.
  static Status forget(Arrays& out, const std::string& name);
  // Removes those of these names that `gone` has, finished and of the same content, and notes its
  // URI, at once and durably.
  static Status leave_for(Arrays& out, const Arrays& gone, const std::vector<std::string>& names,
                          const std::string& uri);
  static Status check_open(const Arrays& of, const std::string& attempted) {
    return of.impl_->check_open(attempted);
  }
  static Runtime* runtime(const Arrays& of) { return of.impl_->runtime; }
  static bool is_same(const Arrays& a, const Arrays& b);
  // A URI that means the same in another working directory.
  static std::string absolute(const std::string& uri);
};

}  // namespace outcore::arrays
