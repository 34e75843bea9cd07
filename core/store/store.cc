// Store: the default of discard(): writes zeros in bounded pieces.
#include "outcore/store.h"

#include "core/store/discard.h"

namespace outcore {

int Store::discard(uint64_t offset, uint64_t size_bytes) {
  return store::write_zeros(
      offset, size_bytes,
      [this](uint64_t at, std::span<const std::byte> zeros) { return write(at, zeros); });
}

}  // namespace outcore
