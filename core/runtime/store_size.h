// StoreSize: what makes a store longer, a map that may do so, and shorter, Runtime::shorten().
//
// In a buffer the size of a file stays as long as others write it, and it is not cut under anybody.
#pragma once

#include <cstdint>
#include <string>

#include "core/runtime/runtime_impl.h"

namespace outcore::runtime {

class StoreSize {
 public:
  explicit StoreSize(Runtime::Impl& runtime) : runtime_(runtime) {}

  // How long it will be with such a region.
  static uint64_t after(const Store& store, const MapOptions& options);
  // As long as the region that is to be mapped, if that may be. REQUIRES: the mapping lock.
  Status enlarge(Store& store, const std::string& uri, const MapOptions& options) const;
  // See Runtime::shorten(). Takes the mapping lock.
  Status shorten(Store& store, uint64_t bytes) const;

 private:
  Runtime::Impl& runtime_;
};

}  // namespace outcore::runtime
