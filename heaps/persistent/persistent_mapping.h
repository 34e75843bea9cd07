// Mapping: the addresses at which a persistent heap lies while it is open, and who brings its pages
// in: a region of a runtime (RegionMapping), or the kernel (KernelMapping). Any thread, except
// unmap(); one thread at a time grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "outcore/region.h"
#include "outcore/result.h"

namespace outcore::heap::persistent {

class Mapping {
 public:
  virtual ~Mapping() = default;  // unmaps

  virtual bool is_mapped() const = 0;
  virtual std::byte* data() const = 0;  // constant until unmap()
  virtual uint64_t size_bytes() const = 0;
  virtual const std::string& uri() const = 0;  // for messages
  // nullptr: the kernel brings the pages in.
  virtual Region* region() = 0;

  // Writes into the heap. Errors are returned, not raised as a signal.
  virtual Status write(uint64_t offset, std::span<const std::byte> from) = 0;
  // The store has every byte that was written before the call. It is durable after Store::sync().
  virtual Status flush() = 0;
  // The range reads zero, and has no space in the store any more. REQUIRES: multiples of 4096.
  virtual Status discard(uint64_t offset, uint64_t size_bytes) = 0;
  // Enlarges store and mapping in place. REQUIRES: within the addresses that were reserved.
  virtual Status grow(uint64_t size_bytes) = 0;
  // Hint: the range will soon be written for the first time.
  virtual void prepare(uint64_t offset, uint64_t size_bytes) noexcept = 0;
  // As Region::unmap().
  virtual Status unmap(bool force) = 0;
};

}  // namespace outcore::heap::persistent
