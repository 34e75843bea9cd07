// ArrayLayout: where the arrays of a workload lie in its one mapping, each from a page of its own.
#pragma once

#include <cstdint>

#include "bench/options.h"

namespace outcore::bench {

class ArrayLayout {
 public:
  // Room for `count` elements behind what is there. Returns where it begins, in bytes.
  template <typename T>
  uint64_t add(uint64_t count) {
    const uint64_t first = size_bytes_;
    size_bytes_ += (count * sizeof(T) + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
    return first;
  }
  // So far; a multiple of kUnitBytes.
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  uint64_t size_bytes_ = 0;
};

}  // namespace outcore::bench
