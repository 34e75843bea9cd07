#include "bench/integer_keys.h"

#include <bit>

#include "bench/array_layout.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kKeysOfAPage = kUnitBytes / sizeof(uint32_t);
constexpr uint64_t kEquals = 16;

}  // namespace

IntegerKeys IntegerKeys::fitting(uint64_t size_bytes) {
  BENCH_CHECK(size_bytes >= kBytesMin && size_bytes <= kBytesMax);
  // Two arrays of all keys, and one of a sixteenth; a page less, as each begins with one.
  const uint64_t keys = size_bytes / sizeof(uint32_t) * kEquals / (2 * kEquals + 1);
  IntegerKeys fitting;
  fitting.count = keys / kKeysOfAPage * kKeysOfAPage;
  fitting.bits = static_cast<unsigned>(std::bit_width(fitting.count / kEquals)) - 1;
  while (fitting.size_bytes() > size_bytes) fitting.count -= kKeysOfAPage;
  for (unsigned i = 0; i < kProbes; ++i)
    fitting.probes[i] = fitting.count * (2 * i + 1) / (2 * kProbes);
  return fitting;
}

uint64_t IntegerKeys::size_bytes() const {
  ArrayLayout layout;
  layout.add<uint32_t>(count);
  layout.add<uint32_t>(count);
  layout.add<uint32_t>(limit());
  return layout.size_bytes();
}

uint32_t IntegerKeys::at(uint64_t index) const {
  uint32_t found = 0;
  make(index, index + 1, [&](uint64_t, uint32_t key) { found = key; });
  return found;
}

std::array<IntegerKeys::Change, 2> IntegerKeys::changes(unsigned pass, unsigned passes) const {
  BENCH_CHECK(pass != 0 && pass <= passes && 2 * uint64_t{passes} < count && passes < limit());
  return {Change{pass, pass}, Change{pass + passes, static_cast<uint32_t>(limit() - pass)}};
}

}  // namespace outcore::bench
